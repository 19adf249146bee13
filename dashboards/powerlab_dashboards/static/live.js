// Live update of a page: refetch it and replace its [data-live] parts until the server no longer marks it as unfinished.
// The event stream triggers refetches; without it, the page polls every few seconds. Unchanged parts are left alone; focus
// and sort order are restored.

import { drawAll } from "./charts.js";
import { _, language } from "./language.js";
import { ask } from "./requests.js";
import { makeSortable, restoreSort, sortState } from "./tables.js";
import { showTimes } from "./times.js";

const PERIOD_MS = 3000; // polling period without the event stream
const CALM_MS = 30000; // and with it, unless the page wants it otherwise: <main data-calm-ms>
const SETTLE_MS = 300; // coalesce events that arrive together
const seen = new Map();

const exchange = (part, incoming) => {
  const html = incoming.innerHTML;
  if (seen.get(part.id) === html) return;
  seen.set(part.id, html);
  const order = sortState(part);
  const buttons = [...part.querySelectorAll("a, button, select")];
  const focused = buttons.indexOf(document.activeElement);
  const ticked = new Set([...part.querySelectorAll("[type=checkbox]:checked")].map((box) => box.name + box.value));
  part.innerHTML = html;
  for (const box of part.querySelectorAll("[type=checkbox]")) if (ticked.has(box.name + box.value)) box.checked = true;
  makeSortable(part);
  showTimes(part);
  part.dispatchEvent(new CustomEvent("exchanged", { bubbles: true }));
  restoreSort(part, order);
  if (focused >= 0) part.querySelectorAll("a, button, select")[focused]?.focus();
};

export const refresh = async () => {
  const address = window.location.href;
  const response = await ask(address, { accept: "text/html" });
  if (address !== window.location.href) return true; // the reader has chosen something else meanwhile
  if (response.redirected) window.location.reload(); // the login has expired; the login page redirects back here
  sayOffline(response.status >= 500);
  if (!response.ok) return true;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const incoming = page.getElementById(part.id);
    if (incoming) exchange(part, incoming);
  }
  await drawAll();
  return page.querySelector("main[data-unfinished]") !== null;
};

let answered = new Date();

// A page that is out of date says so, above what it shows, until the server answers again.
const sayOffline = (offline) => {
  if (!offline) answered = new Date();
  const said = document.getElementById("offline");
  if (offline === (said !== null)) return;
  if (!offline) return said.remove();
  const line = document.createElement("p");
  line.id = "offline";
  line.className = "state warn";
  line.setAttribute("role", "status");
  const time = answered.toLocaleTimeString(language);
  line.textContent = _("The server does not answer. This page shows what was there at %(time)s.", { time });
  document.querySelector("main").prepend(line);
};

let source = null;
let timer = 0;
let due = Infinity;

// Fetch in so many milliseconds, or when that is planned for earlier: a stream that finds no server says so more often
// than the page asks, and must not put it off.
const plan = (wait) => {
  const at = performance.now() + wait;
  if (at >= due) return;
  due = at;
  clearTimeout(timer);
  timer = setTimeout(loop, wait);
};

const close = () => {
  source?.close();
  source = null;
};

const open = () => {
  if (document.hidden || source !== null) return;
  const [, kind, id] = /^\/(sweep|device)s\/([^/]+)/.exec(window.location.pathname) ?? [];
  source = new EventSource(`/api/v1/events${kind ? `?${kind}_id=${id}` : ""}`);
  source.onopen = () => plan(SETTLE_MS);
  source.onmessage = () => plan(SETTLE_MS);
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) close(); // refused; an interrupted stream reconnects by itself
    plan(PERIOD_MS);
  };
};

const turn = () => {
  // Browsers limit connections per server, so a hidden page closes its own.
  if (document.hidden) close();
  else {
    open();
    plan(0);
  }
};

const loop = async () => {
  due = Infinity;
  let unfinished = true;
  try {
    if (!document.hidden) unfinished = await refresh();
  } catch {
    sayOffline(true); // it may be restarting: try again
  }
  if (unfinished) {
    plan(source?.readyState === EventSource.OPEN ? Number(document.querySelector("main").dataset.calmMs ?? CALM_MS) : PERIOD_MS);
    return;
  }
  close();
  document.removeEventListener("visibilitychange", turn);
  document.querySelector("main").removeAttribute("data-unfinished");
};

// Fetch the page anew in a moment; for what another stream tells.
export const refreshSoon = () => plan(SETTLE_MS);

export const follow = () => {
  if (!document.querySelector("main[data-unfinished]")) return;
  for (const part of document.querySelectorAll("[data-live]")) seen.set(part.id, part.innerHTML);
  document.addEventListener("visibilitychange", turn);
  open();
  plan(PERIOD_MS);
};
