// Live readings of one device: the page names it in [data-readings]. Figures are put into [data-reading] places and curves
// into [data-curve] ones, both by the reading's key; a change of phase, or of what there is to read, asks for the page anew.

import { _ } from "./language.js";
import { refreshSoon } from "./live.js";

const SPAN_S = 300;
const GAP_S = 25;
const WIDTH = 120;
const HEIGHT = 24;
const PAD = 2;

const figures = (seen) => {
  const found = new Map([["mode", seen.mode]]);
  if (seen.total) found.set("total", seen.total.power_w);
  for (const rail of seen.rails) found.set(`rail:${rail.rail}`, rail.power_w);
  for (const clock of seen.clocks) found.set(`clock:${clock.name}`, clock.clock_mhz);
  for (const one of seen.temperatures) found.set(`temperature:${one.name}`, one.celsius);
  if (seen.load.length) found.set("load", (100 * seen.load.reduce((sum, share) => sum + share, 0)) / seen.load.length);
  return found;
};

// As sparkline.path in sparkline.py.
const path = (readings, key) => {
  const now = readings.at(-1).at;
  const known = readings.map(({ at, found }) => [(at - now) / 1000, found.get(key)]).filter(([age, value]) => value != null && age >= -SPAN_S);
  const values = known.map(([, value]) => value);
  const least = Math.min(...values);
  const room = Math.max(...values) - least;
  let before = -Infinity;
  return known
    .map(([age, value]) => {
      const x = WIDTH * (1 + age / SPAN_S);
      const y = room <= 0 ? HEIGHT / 2 : HEIGHT - PAD - ((HEIGHT - 2 * PAD) * (value - least)) / room;
      const joined = age - before <= GAP_S;
      before = age;
      return `${joined ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}${joined ? "" : "h0"}`;
    })
    .join("");
};

const text = (place, value) => {
  if (typeof value === "string") return value;
  return value == null ? _("unread") : value.toFixed(Number(place.dataset.digits ?? 2));
};

let readings = [];
let phase = null;
let source = null;

const show = () => {
  const last = readings.at(-1);
  if (!last) return;
  for (const place of document.querySelectorAll("[data-reading]")) {
    const said = text(place, last.found.get(place.dataset.reading));
    if (place.textContent !== said) place.textContent = said;
  }
  for (const curve of document.querySelectorAll("[data-curve] path")) {
    curve.setAttribute("d", path(readings, curve.closest("[data-curve]").dataset.curve));
  }
};

const take = (record) => {
  const fresh = record.readings.map(({ at, seen }) => ({ at: Date.parse(at), found: figures(seen) }));
  const before = readings.at(-1)?.at ?? -Infinity;
  const known = readings.at(-1)?.found.size;
  readings.push(...fresh.filter(({ at }) => at > before));
  const end = readings.at(-1)?.at ?? 0;
  readings = readings.filter(({ at }) => at >= end - SPAN_S * 1000);
  const doing = JSON.stringify(record.phase);
  const changed = (phase !== null && phase !== doing) || (fresh.length > 0 && known !== fresh.at(-1).found.size);
  phase = doing;
  return changed;
};

const open = () => {
  const device = document.querySelector("[data-readings]")?.dataset.readings;
  if (document.hidden || source || !device) return;
  source = new EventSource(`/api/v1/devices/${device}/readings/stream`);
  source.onmessage = ({ data }) => {
    if (take(JSON.parse(data))) refreshSoon();
    show();
  };
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) close(); // refused: the page is still fetched anew now and then
  };
};

const close = () => {
  source?.close();
  source = null;
};

// A part of the page has come anew: what it shows is a moment old, and it may name a device now.
const renew = () => {
  open();
  show();
  countDown();
};

export const followReadings = () => {
  // Browsers limit connections per server, so a hidden page closes its own.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  document.addEventListener("exchanged", renew);
  open();
};

// Time left in [data-left-s]: counted on by the viewer's clock, whatever time that says.
const countDown = () => {
  for (const place of document.querySelectorAll("[data-left-s]")) {
    place.endsAt ??= performance.now() + 1000 * Number(place.dataset.leftS);
    const left = Math.max(0, Math.round((place.endsAt - performance.now()) / 1000));
    const minutes = Math.floor(left / 60);
    const counted = minutes ? _("about %(minutes)s min %(seconds)s s left", { minutes, seconds: left % 60 }) : _("about %(seconds)s s left", { seconds: left });
    place.textContent = left ? counted : _("over at any moment");
  }
};

export const keepCounting = () => {
  countDown();
  setInterval(() => document.hidden || countDown(), 1000);
};
