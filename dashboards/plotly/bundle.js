// Plotly's core (which has scatter) and the other traces that powerlab's charts use.

const Plotly = require("plotly.js/lib/core");

Plotly.register([require("plotly.js/lib/bar"), require("plotly.js/lib/heatmap")]);

module.exports = Plotly;
