// Times: <time data-relative> shows how long ago it was, or how soon it will be, and in its title the moment in the
// viewer's own time zone. The server sends the moment in UTC, which is what stays without this script.

import { _, language } from "./language.js";

const RENEW_MS = 20000;
const STEPS = [
  [60, "second", 1],
  [3600, "minute", 60],
  [86400, "hour", 3600],
  [30 * 86400, "day", 86400],
];
const locale = language === "en" ? "en-GB" : language;
const relative = new Intl.RelativeTimeFormat(language, { style: "short", numeric: "auto" });
const absolute = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long" });
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });

const words = (moment) => {
  const seconds = (moment - Date.now()) / 1000;
  if (Math.abs(seconds) < 10) return _("just now");
  const step = STEPS.find(([below]) => Math.abs(seconds) < below);
  return step ? relative.format(Math.round(seconds / step[2]), step[1]) : day.format(moment);
};

export const showTimes = (root = document) => {
  for (const time of root.querySelectorAll("time[data-relative]")) {
    const moment = new Date(time.dateTime);
    time.textContent = words(moment);
    time.title = absolute.format(moment);
  }
};

export const keepTimes = () => {
  showTimes();
  setInterval(() => document.hidden || showTimes(), RENEW_MS);
};
