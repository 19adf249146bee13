// A click on a point whose data has an address opens it; a chart can be saved as a PNG file.

const SCALE = 2; // pixels of the file for each one of the page

export const openOnClick = (plot) => {
  plot.removeAllListeners("plotly_click");
  plot.on("plotly_click", ({ points, event }) => {
    const address = points[0]?.customdata?.[1];
    if (!address) return;
    if (event?.ctrlKey || event?.metaKey) window.open(address);
    else window.location.assign(address);
  });
};

export const savePng = async (plot, name) => {
  const { clientWidth: width, clientHeight: height } = plot;
  const image = new Image();
  image.src = await window.Plotly.toImage(plot, { format: "svg", width, height });
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [SCALE * width, SCALE * height];
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const link = document.createElement("a");
  link.href = canvas.toDataURL("image/png");
  link.download = `powerlab-${name}.png`;
  link.click();
};

export const watchPngs = () => {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-png]");
    const plot = button && document.querySelector(`#${button.dataset.png} .plot.js-plotly-plot`);
    if (plot) savePng(plot, button.dataset.png);
  });
};
