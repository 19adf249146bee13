// A sweep in progress: the page is fetched again every few seconds and its [data-live] parts are exchanged, until the
// server no longer marks it as unfinished. A part with the focus or unchanged text is left alone or put back as it was.

import { drawAll } from "./charts.js";
import { makeSortable, restoreSort, sortState } from "./tables.js";

const PERIOD_MS = 3000;
const seen = new Map();

const exchange = (part, incoming) => {
  const html = incoming.innerHTML;
  if (seen.get(part.id) === html) return;
  seen.set(part.id, html);
  const order = sortState(part);
  const buttons = [...part.querySelectorAll("a, button")];
  const focused = buttons.indexOf(document.activeElement);
  part.innerHTML = html;
  makeSortable(part);
  restoreSort(part, order);
  if (focused >= 0) part.querySelectorAll("a, button")[focused]?.focus();
};

const refresh = async () => {
  const response = await fetch(window.location.href, { headers: { accept: "text/html" } });
  if (response.redirected) window.location.reload(); // the login is over: its page leads back here
  if (!response.ok) return true;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const incoming = page.getElementById(part.id);
    if (incoming) exchange(part, incoming);
  }
  await drawAll();
  return page.querySelector("main[data-unfinished]") !== null;
};

const loop = async () => {
  let unfinished = true;
  try {
    if (!document.hidden) unfinished = await refresh();
  } catch {
    unfinished = true; // the server may be restarting: ask again
  }
  if (unfinished) setTimeout(loop, PERIOD_MS);
  else document.querySelector("main").removeAttribute("data-unfinished");
};

export const follow = () => {
  if (document.querySelector("main[data-unfinished]")) setTimeout(loop, PERIOD_MS);
};
