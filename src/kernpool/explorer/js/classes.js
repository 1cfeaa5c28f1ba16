/** Probabilities of the classes along the column: stacked bands, told apart by colour, pattern and name; rows as a rug. */
import { areaPath, linearScale, makeChart } from "./chart.js";
import { axisName, ticksOf } from "./dates.js";
import { html, put, svg } from "./dom.js";
import { makeHandle, queryAt, spaced, titled, within } from "./panel.js";

const ALONG = 201;
const RUG = 12; // pixels of a class in the rug
// Lines of a tile of 8 x 8 pixels, so that bands differ without their colours.
const PATTERNS = ["M0 4H8", "M4 0V8", "M0 8L8 0M-2 2L2 -2M6 10L10 6", "M0 0L8 8M6 -2L10 2M-2 6L2 10", "M0 4H8M4 0V8", "M0 0L8 8M8 0L0 8", "M2 2h1M6 6h1", "M0 2H8M0 6H8", "M2 0V8M6 0V8"];

export function makeClasses(root, context) {
  const { store, words } = context;
  const { classes } = context.data();
  const id = "kx-tile-" + ++tiles + "-";
  titled(root, words("classes.title"), words("classes.note"));
  const rug = classes.length * RUG + 6;
  const chart = makeChart(root, { height: 260 + rug, left: 52, right: 90, bottom: 44 + rug }, () => show());
  chart.element.classList.add("kx-classes");
  chart.svg.prepend(svg("defs", {}, ...classes.map((_, c) =>
    svg("pattern", { id: id + c, class: "kx-tile", style: `--kx-tint:var(--kp-class-${c % 10})`, width: 8, height: 8, patternUnits: "userSpaceOnUse" }, svg("rect", { width: 8, height: 8 }), svg("path", { d: PATTERNS[c % PATTERNS.length] })))));
  const bands = classes.map((_, c) => chart.layer("path", { fill: `url(#${id}${c})`, class: "kx-band" }));
  const line = chart.layer("path", { class: "kx-query" }, chart.over);
  const marks = classes.map((_, c) => chart.layer("path", { class: "kx-rug" }, chart.over));
  const text = (attributes) => classes.map((name) => chart.over.appendChild(svg("text", attributes, name)));
  const inside = text({ class: "kx-inside", "text-anchor": "middle" });
  const beside = text({});
  const shares = classes.map(() => html("span", {}));
  root.append(html("ul", { class: "kx-classes" }, ...classes.map((name, c) =>
    html("li", {}, svg("svg", { width: 18, height: 12, "aria-hidden": "true" }, svg("rect", { width: 18, height: 12, fill: `url(#${id}${c})` })), name + " ", shares[c]))));

  const choose = (value) => {
    const { column, query } = store.get();
    const { low, high } = context.data();
    store.set({ query: queryAt(query, column, within(value, low[column], high[column])) });
  };
  const handle = makeHandle(chart, {
    label: words("classes.handle"),
    move: (at) => choose(at[0]),
    step(steps) {
      const { column, query } = store.get();
      const { low, high } = context.data();
      choose(query.numeric[column] + steps * ((high[column] - low[column]) / 100 || 1));
    },
  });

  const show = () => {
    const { column, query } = store.get();
    const data = context.data();
    const places = spaced(data.low[column], data.high[column], ALONG);
    const probability = context.pool().curve(column, places, query);
    root.numbers = { places, probability };
    const x = linearScale([places[0], places[ALONG - 1]], chart.xRange);
    chart.axes({
      x,
      y: linearScale([0, 1], chart.yRange),
      xTicks: ticksOf(data, column, x, chart.inner),
      xLabel: axisName(data, column),
      yLabel: words("classes.probability"),
    });
    const taken = [];
    let lower = new Float64Array(ALONG).map((_, i) => (Number.isNaN(probability[i]) ? NaN : 0));
    bands.forEach((band, c) => {
      const upper = lower.map((below, i) => below + probability[c * ALONG + i]);
      put(band, "d", areaPath(places, lower, upper, chart.x, chart.y));
      // The name stands where its band is highest, if that is enough; the legend has all.
      const own = probability.subarray(c * ALONG, (c + 1) * ALONG);
      const k = own.reduce((best, share, i) => (share > own[best] || Number.isNaN(own[best]) ? i : best), 0);
      const half = inside[c].getComputedTextLength() / 2 + 4;
      const x = within(chart.x(places[k]), chart.xRange[0] + half, chart.xRange[1] - half);
      put(inside[c], "x", x);
      const high = chart.y(lower[k]) - chart.y(upper[k]);
      const middle = chart.y(upper[k]) + high / 2 + 4;
      const isFree = (y) => taken.every(([u, v, w]) => Math.abs(x - u) > half + w || Math.abs(y - v) > 16);
      const y = [0, 18, -18, 36, -36].map((one) => middle + one).find((one) => Math.abs(one - middle) <= high / 2 - 9 && isFree(one));
      put(inside[c], "visibility", y === undefined ? "hidden" : null);
      if (y !== undefined) {
        put(inside[c], "y", y);
        taken.push([x, y, half]);
      }
      lower = upper;
    });
    marks.forEach((mark, c) => {
      const y = chart.yRange[0] + 22 + c * RUG;
      let d = "";
      for (let i = 0; i < data.n; i++) if (data.outputs[c][i] === 1) d += `M${chart.x(data.numeric[column][i]).toFixed(1)} ${y}v${RUG - 3}`;
      put(mark, "d", d);
      put(beside[c], "x", chart.xRange[1] + 6);
      put(beside[c], "y", y + RUG - 3);
    });
    at();
  };

  /** The probabilities of the query. */
  const at = () => {
    const { column, query } = store.get();
    const data = context.data();
    const value = context.pool().value(query);
    put(line, "d", `M${chart.x(query.numeric[column])} ${chart.yRange[1]}V${chart.yRange[0]}`);
    shares.forEach((share, c) => put(share, "text", words.number(value[c], 3)));
    const text = classes.map((name, c) => `${name} ${words.number(value[c], 3)}`).join(", ");
    chart.label(words("classes.label", { name: data.names[column], query: words.number(query.numeric[column]), text }));
    handle.place({ low: data.low[column], high: data.high[column], now: query.numeric[column], text: `${words.number(query.numeric[column])}: ${text}` });
  };

  let made = null;
  return {
    update() {
      const { settings, column, query } = store.get();
      const key = [context.data(), settings, JSON.stringify([column, query.numeric.map((value, a) => a !== column && value), query.codes])];
      if (!made || key.some((part, i) => part !== made[i])) {
        made = key;
        show();
      } else at();
    },
    destroy: () => chart.destroy(),
  };
}

let tiles = Math.floor(1e9 * Math.random());
