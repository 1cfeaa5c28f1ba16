/** Probabilities of the classes along the column: stacked bands, told apart by colour, pattern and name; rows as a rug. */
import { areaPath, linearScale, makeChart } from "./chart.js";
import { html, put, svg } from "./dom.js";
import { makeHandle, queryAt, spaced, titled, within } from "./panel.js";

const PLACES = 201;
const RUG = 7; // pixels of a class in the rug
// Lines of a tile of 8 x 8 pixels, so that bands differ without their colours.
const PATTERNS = ["M0 4H8", "M4 0V8", "M0 8L8 0M-2 2L2 -2M6 10L10 6", "M0 0L8 8M6 -2L10 2M-2 6L2 10", "M0 4H8M4 0V8", "M0 0L8 8M8 0L0 8", "M2 2h1M6 6h1", "M0 2H8M0 6H8", "M2 0V8M6 0V8", ""];

export function makeClasses(root, context) {
  const { store, words } = context;
  const { classes } = context.data();
  const of = (c, suffix) => `kx-class-${c % PATTERNS.length}${suffix}`;
  const id = "kx-tile-" + ++explorers + "-";
  titled(root, words("classes.title"), words("classes.note"));
  const rug = classes.length * RUG + 6;
  const chart = makeChart(root, { height: 260 + rug, left: 52, right: 90, bottom: 44 + rug }, () => show());
  chart.element.classList.add("kx-classes");
  chart.svg.prepend(svg("defs", {}, ...classes.map((_, c) =>
    svg("pattern", { id: id + c, class: of(c, ""), width: 8, height: 8, patternUnits: "userSpaceOnUse" }, svg("rect", { width: 8, height: 8 }), svg("path", { d: PATTERNS[c % PATTERNS.length] })))));
  const bands = classes.map((_, c) => chart.layer("path", { fill: `url(#${id}${c})`, class: "kx-band" }));
  const line = chart.layer("path", { class: "kx-query" }, chart.over);
  const marks = classes.map((_, c) => chart.layer("path", { class: "kx-rug " + of(c, "") }, chart.over));
  const names = classes.map((name) => chart.layer("text", { class: "kx-class-name" }, chart.over).appendChild(document.createTextNode(name)).parentNode);
  const shares = classes.map(() => html("span", {}));
  root.append(html("ul", { class: "kx-legend" }, ...classes.map((name, c) =>
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
      choose(query.numeric[column] + (steps * (context.data().high[column] - context.data().low[column])) / 100);
    },
  });

  const show = () => {
    const { column, query } = store.get();
    const data = context.data();
    const places = spaced(data.low[column], data.high[column], PLACES);
    const probability = context.pool().curve(column, places, query);
    root.numbers = { places, probability };
    chart.axes({
      x: linearScale([places[0], places[PLACES - 1]], chart.xRange),
      y: linearScale([0, 1], chart.yRange),
      xLabel: data.names[column],
      yLabel: words("classes.probability"),
    });
    let lower = new Float64Array(PLACES).map((_, i) => (Number.isNaN(probability[i]) ? NaN : 0));
    bands.forEach((band, c) => {
      const upper = lower.map((below, i) => below + probability[c * PLACES + i]);
      put(band, "d", areaPath(places, lower, upper, chart.x, chart.y));
      // Names at the right, where their bands are high enough there; the legend has all.
      const [from, to] = [lower[PLACES - 1], upper[PLACES - 1]].map(chart.y);
      const room = from - to >= 13;
      for (const [name, value] of Object.entries({ x: chart.xRange[1] + 6, y: (from + to) / 2 + 4, display: room ? null : "none" })) put(names[c], name, value);
      lower = upper;
    });
    marks.forEach((mark, c) => {
      const y = chart.height - 40 - rug + c * RUG;
      let d = "";
      for (let i = 0; i < data.n; i++) if (data.outputs[c][i] === 1) d += `M${chart.x(data.numeric[column][i]).toFixed(1)} ${y + 18}v${RUG - 1}`;
      put(mark, "d", d);
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

let explorers = 0;
