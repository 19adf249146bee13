// Writes plotly.min.js, and the licences of what is in it, into the folder that is given.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2];
const { version } = JSON.parse(readFileSync("node_modules/plotly.js/package.json"));
const { metafile } = await build({
  entryPoints: ["bundle.js"],
  outfile: join(folder, "plotly.min.js"),
  bundle: true,
  minify: true,
  metafile: true,
  format: "iife",
  globalName: "Plotly",
  target: "es2020",
  legalComments: "none",
  loader: { ".css": "empty" }, // of maps
  define: { global: "window" },
  banner: { js: `/* plotly.js ${version}, a part of it (dashboards/plotly). Copyright Plotly, Inc., MIT License; all licences: plotly-licences.txt */` },
});

const packages = new Set();
for (const path of Object.keys(metafile.inputs)) {
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (name) packages.add(path.slice(0, path.indexOf(name, path.lastIndexOf("node_modules/")) + name.length));
}
const notice = (path) => {
  const { name, version, license } = JSON.parse(readFileSync(join(path, "package.json")));
  const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(path, file), "utf8").trim() : "";
  return `${name} ${version} (${license})\n\n${text}\n`;
};
const notices = [...packages].sort().map(notice).join(`\n${"-".repeat(80)}\n\n`);
writeFileSync(join(folder, "plotly-licences.txt"), notices.replaceAll("\r\n", "\n"));
