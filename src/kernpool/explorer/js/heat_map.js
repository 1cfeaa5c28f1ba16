/** The heat map of weights: queries along the axis down, keys in sorted order across, the query's row lit. */
import { makeChart, linearScale } from "./chart.js";
import { axisName, ticksOf } from "./dates.js";
import { html, put } from "./dom.js";
import { gradually, makeHandle, queryAt, spaced, titled, tone, within } from "./panel.js";
import { makePool } from "./pool.js";

const QUERIES = 50; // queries, as many as the grids that this picture is taught with have
const MOST_CELLS = 250; // beyond so many keys a cell shows the largest weight of several
const ROUND = [1, 2, 5, 10];
// From the paper to its opposite through one hue, on light and on dark.
const REDS = { light: ["#fff5f0", "#fcbba1", "#fb6a4a", "#cb181d", "#67000d"], dark: ["#24171a", "#5c1a1c", "#b0321f", "#f4795c", "#ffe3d8"] };

export function makeHeatMap(root, context) {
  const { store, words, payload } = context;
  titled(root, words("heat.title"), words("heat.note") + (context.data().numeric.length + context.data().categorical.length > 1 ? " " + words("heat.more") : ""));
  const chart = makeChart(root, { height: 300, left: 74, right: 74, bottom: 44, top: 8 }, () => show());
  chart.element.classList.add("kx-heat");
  const row = chart.layer("rect", { class: "kx-lit" }, chart.over);
  const pointer = chart.layer("path", { class: "kx-lit-mark" }, chart.over);
  const bar = [0, 0.5, 1].map((at) => ({ at, text: chart.layer("text", { class: "kx-bar" }, chart.over) }));
  const readout = root.appendChild(html("p", { class: "kx-readout" }));
  const image = document.createElement("canvas");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let matrix = null;
  let made = null;
  let scaled = [];
  let top = 1; // weight where the colours end
  let stop = () => {};

  const choose = (value) => {
    const { column, query } = store.get();
    const { low, high } = context.data();
    store.set({ query: queryAt(query, column, within(value, low[column], high[column])) });
  };
  const handle = makeHandle(chart, {
    label: words("heat.handle"),
    vertical: true,
    move: (at) => choose(at[1]),
    step(steps) {
      const { column, query } = store.get();
      const { low, high } = context.data();
      choose(query.numeric[column] + steps * ((high[column] - low[column]) / (QUERIES - 1) || 1));
    },
  });
  handle.element.addEventListener("pointermove", (event) => tell(chart.at(event)));
  handle.element.addEventListener("pointerleave", () => tell(null));

  /** Say what the pointer is on, or else the query's row. */
  const tell = (at) => {
    if (!matrix) return;
    const { count, places, cells, from, largest } = matrix;
    const nearest = (value) => within(Math.round(((value - places[0]) / (places[QUERIES - 1] - places[0] || 1)) * (QUERIES - 1)), 0, QUERIES - 1);
    if (!at) return put(readout, "text", words("heat.largest", { weight: words.number(largest), n: context.data().n }));
    const i = nearest(at[1]);
    const c = within(Math.floor(((at[0] - 0.5) / context.data().n) * count), 0, count - 1);
    const values = { query: words.number(places[i]), first: from[c] + 1, last: from[c + 1], weight: words.number(cells[i * count + c]) };
    put(readout, "text", words(values.first === values.last ? "heat.one" : "heat.many", values));
  };

  /** Cells as pixels, and the colour bar beside them. */
  const paint = () => {
    const { count, cells } = matrix;
    const of = shades(tone(root, "--kp-paper"));
    const [left, right] = chart.xRange;
    const [base, up] = chart.yRange;
    const pen = chart.paint();
    const draw = (width, height, value, ...box) => {
      Object.assign(image, { width, height });
      const ink = image.getContext("2d");
      const pixels = ink.createImageData(width, height);
      for (let i = 0; i < width * height; i++) pixels.data.set([...of(value(i)), 255], 4 * i);
      ink.putImageData(pixels, 0, 0);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(image, ...box);
    };
    draw(count, QUERIES, (i) => cells[i] / top, left, up, right - left, base - up);
    draw(1, 64, (i) => 1 - i / 63, right + 10, up, 12, base - up);
    for (const { at, text } of bar) {
      for (const [name, value] of Object.entries({ x: right + 26, y: base - at * (base - up) + (at === 1 ? 10 : at ? 4 : 0) })) put(text, name, value);
      put(text, "text", (at === 1 && matrix.largest > top ? "≥ " : "") + Number((at * top).toPrecision(3)));
    }
  };

  const show = () => {
    if (!matrix) return;
    const { column, query } = store.get();
    const { places } = matrix;
    const data = context.data();
    const [base, up] = chart.yRange;
    const half = (places[QUERIES - 1] - places[0]) / (QUERIES - 1) / 2 || 0.5;
    const y = linearScale([places[0] - half, places[QUERIES - 1] + half], [up, base]);
    const dates = ticksOf(data, column, y, 2 * (base - up));
    chart.axes({
      x: linearScale([0.5, data.n + 0.5], chart.xRange),
      y,
      yTicks: dates?.map(([value, text]) => [value, text.length === 10 ? text.slice(5) : text]),
      xLabel: words("heat.keys", { n: data.n }),
      yLabel: dates ? axisName(data, column) : words("heat.queries", { name: axisName(data, column) }),
    });
    paint();
    mark(query.numeric[column]);
    tell(null);
  };

  /** Light the row of the query. */
  const mark = (value) => {
    const { places } = matrix;
    const [left, right] = chart.xRange;
    const high = chart.y(places[1]) - chart.y(places[0]);
    const y = within(chart.y(value) - high / 2, chart.yRange[1], chart.yRange[0] - high);
    for (const [name, at] of Object.entries({ x: left, width: right - left, y, height: high })) put(row, name, at);
    put(pointer, "d", `M${right + 1} ${y + high / 2}l7 -4v8Z`);
    const text = words("heat.label", { n: context.data().n, name: context.data().names[store.get().column], query: words.number(value), largest: words.number(matrix.largest) });
    chart.label(text);
    handle.place({ low: places[0], high: places[QUERIES - 1], now: value, text: words.number(value) });
  };

  /** Rows of the matrix; of other data or another column first the scale, so that it stays while the settings change. */
  function* rows(data, query, column, isOther) {
    if (isOther) {
      const { peaks } = yield* heatRows(makePool(data, { ...store.get().settings, ...payload.fitted }), data, query, column);
      top = scaleEnd(peaks);
      scaled = [data, column];
    }
    return yield* heatRows(context.pool(), data, query, column);
  }

  dark.addEventListener("change", show);
  return {
    update(changed) {
      const { settings, column, query } = store.get();
      const data = context.data();
      const others = query.numeric.map((value, a) => (a === column ? null : value));
      const key = [data, settings, JSON.stringify([column, others, query.codes])];
      if (!made || key.some((part, i) => part !== made[i])) {
        made = key;
        stop();
        const isOther = scaled[0] !== data || scaled[1] !== column;
        stop = gradually(context, root, rows(data, query, column, isOther), (found) => {
          matrix = found;
          root.numbers = { ...found, top };
          show();
        });
      } else if (matrix && changed.has("theme")) show();
      else if (matrix && changed.has("query")) mark(query.numeric[column]);
    },
    destroy() {
      stop();
      chart.destroy();
      dark.removeEventListener("change", show);
    },
  };
}

/** Colours of shares from 0 to 1, for a paper. */
function shades(paper) {
  const bytes = (hex) => [0, 1, 2].map((k) => (hex.length > 5 ? parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16) : 17 * parseInt(hex[1 + k], 16)));
  const stops = REDS[bytes(paper)[0] > 127 ? "light" : "dark"].map(bytes);
  return (share) => {
    const at = within(share, 0, 1) * (stops.length - 1);
    const k = Math.min(Math.floor(at), stops.length - 2);
    return stops[k].map((tint, j) => tint + (at - k) * (stops[k + 1][j] - tint));
  };
}

/**
 * Weights of QUERIES queries along a column over the keys in the order of that column, a query at a time.
 * @returns {Generator} finally {places, cells: QUERIES x count by rows, from: first key of each cell, count, peaks: QUERIES, largest}
 */
export function* heatRows(pool, data, query, column) {
  const order = data.sorted[column];
  const count = Math.min(data.n, MOST_CELLS);
  const from = Int32Array.from({ length: count + 1 }, (_, c) => Math.floor((c * data.n) / count));
  const places = spaced(data.low[column], data.high[column], QUERIES);
  const cells = new Float64Array(QUERIES * count);
  const peaks = new Float64Array(QUERIES);
  for (let i = 0; i < QUERIES; i++) {
    const { weight } = pool.at(queryAt(query, column, places[i]));
    for (let c = 0; c < count; c++) {
      let most = 0;
      for (let j = from[c]; j < from[c + 1]; j++) if (weight[order[j]] > most) most = weight[order[j]];
      cells[i * count + c] = most;
      if (most > peaks[i]) peaks[i] = most;
    }
    yield i;
  }
  return { places, cells, from, count, peaks, largest: Math.max(...peaks) };
}

/** A round number that half of the rows stay below: an isolated key has the whole weight, and would leave others pale. */
function scaleEnd(peaks) {
  const ascending = peaks.slice().sort();
  const high = ascending[QUERIES >> 1] || ascending[QUERIES - 1] || 1;
  const power = 10 ** Math.floor(Math.log10(high));
  return Math.min(1, Number((power * ROUND.find((step) => step * power >= high * 0.9999)).toPrecision(1)));
}
