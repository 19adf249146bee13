// Zooming along time: a part that is chosen by dragging or with the buttons is fetched anew, at its own resolution.

import { draw } from "./charts.js";

const shown = (plot) => plot.layout.xaxis.range.map(Number);

const show = async (plot, span) => {
  plot.span = span;
  await draw(plot);
  plot.dataset.span = span ? span.map((one) => one.toPrecision(6)).join(" ") : "all";
};

const steps = {
  in: ([from, to]) => [from + (to - from) / 4, to - (to - from) / 4],
  out: ([from, to]) => [from - (to - from) / 2, to + (to - from) / 2],
  earlier: ([from, to]) => [from - (to - from) / 2, to - (to - from) / 2],
  later: ([from, to]) => [from + (to - from) / 2, to + (to - from) / 2],
  all: () => null,
};

// What lies outside the whole run holds nothing to see.
const within = (span, whole) => {
  if (span === null || (span[0] <= whole[0] && span[1] >= whole[1])) return null;
  const length = Math.min(span[1] - span[0], whole[1] - whole[0]);
  const from = Math.max(whole[0], Math.min(span[0], whole[1] - length));
  return [from, from + length];
};

const makeZoomable = (plot) => {
  const whole = shown(plot);
  const buttons = plot.parentElement.querySelector(".zoom");
  buttons.hidden = false;
  buttons.addEventListener("click", ({ target }) => {
    const step = target.dataset?.zoom;
    if (!step) return;
    const span = steps[step] ? steps[step](shown(plot)) : step.split(" ").map(Number);
    show(plot, within(span, whole));
  });
  plot.on("plotly_relayout", (change) => {
    const span = [change["xaxis.range[0]"], change["xaxis.range[1]"]].map(Number);
    if (span.every(Number.isFinite)) show(plot, within(span, whole));
  });
  // The browser counts clicks by when they were made, Plotly by when a busy page gets to them.
  plot.addEventListener("click", ({ detail }) => {
    if (detail === 2) show(plot, null);
  });
};

export const zoomAll = (root = document) => {
  for (const plot of root.querySelectorAll(".plot[data-zoomable][data-drawn]")) makeZoomable(plot);
};
