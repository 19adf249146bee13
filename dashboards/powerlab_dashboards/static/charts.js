// Charts: each .plot has the URL of its figure, which the server builds for the page's theme and width.
// A plot with a span shows that part of its time only, which the server is asked for.

import { openOnClick } from "./chart_points.js";
import { _ } from "./language.js";
import { ask } from "./requests.js";

const RETRY_MS = 5000;
const chosen = document.documentElement.dataset.theme; // "light", "dark", or as the system is
const system = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (chosen === "dark" || chosen === "light" ? chosen === "dark" : system.matches);
const narrow = window.matchMedia("(max-width: 700px)");
const options = {
  responsive: true,
  displaylogo: false,
  displayModeBar: false,
  showTips: false,
  doubleClick: false,
};

const say = (plot, text) => {
  if (plot.classList.contains("js-plotly-plot")) window.Plotly.purge(plot);
  const sentence = document.createElement("p");
  sentence.className = "state";
  sentence.textContent = text;
  plot.replaceChildren(sentence);
  plot.classList.add("said");
};

// While the server does not answer, a chart that is there stays, and is asked for again.
const wait = (plot) => {
  if (!plot.dataset.drawn) say(plot, _("The server does not answer. Trying again every few seconds."));
  setTimeout(() => draw(plot), RETRY_MS);
};

export const draw = async (plot) => {
  const theme = isDark() ? "dark" : "light";
  const address = new URL(plot.dataset.figure, window.location.href);
  if (plot.dataset.choices !== undefined) address.search = window.location.search;
  address.searchParams.set("theme", theme);
  address.searchParams.set("narrow", narrow.matches ? "1" : "0");
  if (plot.span) {
    address.searchParams.set("from_s", plot.span[0]);
    address.searchParams.set("to_s", plot.span[1]);
  }
  const turn = (plot.turn = (plot.turn ?? 0) + 1);
  const response = await ask(address).catch(() => null);
  if (plot.turn !== turn) return; // the answer to an older question would be drawn over a newer one
  if (response === null) return wait(plot);
  try {
    if (!response.ok) throw new Error(_("the server returned status %(status)s", { status: response.status }));
    const text = await response.text().catch(() => null);
    if (text === null) return wait(plot);
    if (plot.shown === text) return;
    plot.shown = text;
    const figure = JSON.parse(text);
    if (figure.reason) return say(plot, figure.reason);
    if (plot.classList.contains("said")) plot.replaceChildren();
    plot.classList.remove("said");
    await window.Plotly.react(plot, figure.data, figure.layout, options);
    openOnClick(plot);
    plot.dataset.drawn = theme;
  } catch (error) {
    plot.shown = null;
    say(plot, _("Could not draw this chart: %(reason)s.", { reason: error.message }));
  }
};

export const drawAll = (root = document) => Promise.all([...root.querySelectorAll(".plot[data-figure]")].map(draw));

system.addEventListener("change", () => drawAll());
narrow.addEventListener("change", () => drawAll());
