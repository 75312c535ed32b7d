// Small line charts of the last five minutes.
import { h, text } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SECONDS = 300;
const WIDTH = 300, HEIGHT = 84;
const COLOURS = ["a", "b", "c", "d"];

function s(tag, props) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  return element;
}

/** A chart of `series` ({name, of: point => number|null}); `show` writes values. */
export function chart(title, series, show) {
  const colour = (i) => series[i].colour ?? COLOURS[i];
  const top = h("span");
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  svg.append(s("line", { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }));
  const cross = s("line", { class: "cross", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const paths = series.map((_, i) => s("path", { class: colour(i), d: "" }));
  svg.append(...paths, cross);
  const values = series.map(() => h("span"));
  const legend = h("div", { class: "legend" }, series.map((one, i) => h("span", null, h("i", { class: colour(i) }), `${one.name} `, values[i])));
  const element = h("figure", { class: "chart" }, h("div", { class: "chart-top" }, h("h3", null, title), top), svg, legend);
  let points = [];
  let at = null;

  function legendOf(point) {
    series.forEach((one, i) => text(values[i], point ? show(one.of(point)) : ""));
  }
  function pointed() {
    if (at === null || !points.length) return points.at(-1);
    const time = points.at(-1).at_ms - (1 - at) * SECONDS * 1000;
    return points.reduce((best, point) => (Math.abs(point.at_ms - time) < Math.abs(best.at_ms - time) ? point : best));
  }
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    at = (event.clientX - box.left) / box.width;
    cross.setAttribute("x1", at * WIDTH);
    cross.setAttribute("x2", at * WIDTH);
    cross.setAttribute("visibility", "visible");
    legendOf(pointed());
  });
  svg.addEventListener("pointerleave", () => {
    at = null;
    cross.setAttribute("visibility", "hidden");
    legendOf(pointed());
  });

  element.draw = (all) => {
    points = all;
    const last = points.at(-1);
    if (!last) return;
    let most = 0;
    for (const point of points) for (const one of series) most = Math.max(most, one.of(point) ?? 0);
    const scale = most > 0 ? (HEIGHT - 4) / most : 0;
    series.forEach((one, i) => {
      let d = "";
      let pen = "M";
      for (const point of points) {
        const value = one.of(point);
        if (value === null || value === undefined) {
          pen = "M";
          continue;
        }
        const x = WIDTH - ((last.at_ms - point.at_ms) / 1000) * (WIDTH / SECONDS);
        d += `${pen}${x.toFixed(1)} ${(HEIGHT - 1 - value * scale).toFixed(1)}`;
        pen = "L";
      }
      paths[i].setAttribute("d", d);
    });
    text(top, most > 0 ? `up to ${show(most)}` : "");
    legendOf(pointed());
    svg.setAttribute("aria-label", `${title}: ${series.map((one) => `${one.name} ${show(one.of(last))}`).join(", ")}`);
  };
  return element;
}
