// Charts: each .plot has the URL of its figure, which the server builds for the page's theme and width.

import { _ } from "./language.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = window.matchMedia("(max-width: 700px)");
const options = {
  responsive: true,
  displaylogo: false,
  displayModeBar: false,
  showTips: false,
};

const say = (plot, text) => {
  if (plot.classList.contains("js-plotly-plot")) window.Plotly.purge(plot);
  const sentence = document.createElement("p");
  sentence.className = "state";
  sentence.textContent = text;
  plot.replaceChildren(sentence);
  plot.classList.add("said");
};

const draw = async (plot) => {
  const theme = dark.matches ? "dark" : "light";
  const address = new URL(plot.dataset.figure, window.location.href);
  address.searchParams.set("theme", theme);
  address.searchParams.set("narrow", narrow.matches ? "1" : "0");
  try {
    const response = await fetch(address);
    if (!response.ok) throw new Error(_("the server returned status %(status)s", { status: response.status }));
    const text = await response.text();
    if (plot.shown === text) return;
    plot.shown = text;
    const figure = JSON.parse(text);
    if (figure.reason) return say(plot, figure.reason);
    if (plot.classList.contains("said")) plot.replaceChildren();
    plot.classList.remove("said");
    await window.Plotly.react(plot, figure.data, figure.layout, options);
    plot.dataset.drawn = theme;
  } catch (error) {
    say(plot, _("Could not draw this chart: %(reason)s.", { reason: error.message }));
  }
};

export const drawAll = (root = document) => Promise.all([...root.querySelectorAll(".plot[data-figure]")].map(draw));

dark.addEventListener("change", () => drawAll());
narrow.addEventListener("change", () => drawAll());
