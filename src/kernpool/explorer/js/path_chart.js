/** Leave-one-out error over the bandwidth, a common factor of all, or the number of neighbors: its minimum, and a mark. */
import { extent, linePath, linearScale, logScale, makeChart } from "./chart.js";
import { html, put } from "./dom.js";
import { leftOut } from "./leave_one_out.js";
import { gradually, makeHandle, spaced, titled, within } from "./panel.js";
import { makePool } from "./pool.js";
import { isNearest, neighborRange, neighborsOf } from "./widths.js";

const GRID = 41;
const REFINED = 2000; // rows up to which the minimum is found to four digits, or to one neighbor
const GOLDEN = (Math.sqrt(5) - 1) / 2;

export function makePathChart(root, context) {
  const { store, words, payload } = context;
  titled(root, words("path.title"), words("path.note"));
  const button = html("button", { type: "button", "data-action": "minimum", onclick: () => (isFound && minimum ? choose(minimum.h) : (isWanted = true)) }, words("path.go"));
  const readout = html("p", { class: "kx-readout" });
  root.append(html("div", { class: "kx-row" }, button, readout));
  const chart = makeChart(root, { height: 215, left: 64 }, () => show());
  const line = chart.layer("path", { class: "kx-line" });
  const empties = chart.layer("path", { class: "kx-empty" });
  const lowest = chart.layer("circle", { class: "kx-lowest", r: 5 }, chart.over);
  const mark = chart.layer("path", { class: "kx-query" }, chart.over);
  // Nearest keys: how many. One column: h itself. Several: a factor of what the model has found.
  const start = (payload.fitted || payload.settings).bandwidth;
  const one = () => context.data().numeric.length === 1;
  const kind = () => (isNearest(store.get().settings) ? "neighbors" : one() ? "h" : "factor");
  const size = (settings) => {
    const { bandwidth } = settings;
    if (isNearest(settings)) return neighborsOf(context.data(), settings);
    return one() ? bandwidth[0] : Math.exp(meanOf(bandwidth.map((h, a) => Math.log(h / start[a]))));
  };
  const shown = (value, digits) => (kind() === "neighbors" ? String(value) : words.number(value, digits));
  const resized = (settings, value) => {
    if (isNearest(settings)) return { neighbors: Math.round(value) };
    const factor = value / size(settings);
    return { bandwidth: settings.bandwidth.map((h) => h * factor) };
  };
  let grid = new Float64Array(GRID);
  let errors = grid;
  let empty = grid;
  let minimum = null; // {h, error}
  let made = null;
  let isFound = false; // the minimum, and not the lowest point so far
  let isWanted = false; // as soon as it is found
  let stop = () => {};

  const choose = (value) => store.set({ settings: resized(store.get().settings, value) });
  const handle = makeHandle(chart, {
    label: words("path.h"),
    move: (at) => choose(within(at[0], grid[0], grid.at(-1))),
    step: (steps) => {
      const { settings } = store.get(), now = size(settings);
      choose(within(isNearest(settings) ? now + steps : now * 1.05 ** steps, grid[0], grid.at(-1)));
    },
  });

  const show = () => {
    if (made === null) return;
    const known = grid.map((_, k) => k).filter((k) => Number.isFinite(errors[k]));
    if (!known.length) return;
    const [low, high] = extent([errors], 0.08);
    chart.axes({
      x: logScale([grid[0], grid.at(-1)], chart.xRange),
      y: linearScale([Math.max(0, low), high], chart.yRange),
      xLabel: words("path." + kind()),
      yLabel: words(context.data().classes ? "path.brier" : "path.squared"),
    });
    put(line, "d", linePath([...known].map((k) => grid[k]), [...known].map((k) => errors[k]), chart.x, chart.y));
    put(empties, "d", Array.from(grid, (h, k) => (empty[k] > 0 ? `M${chart.x(h).toFixed(1)} ${chart.yRange[0]}v-${(3 + (9 * empty[k]) / context.data().n).toFixed(1)}` : "")).join(""));
    const best = lowestOf(errors);
    if (!minimum || errors[best] < minimum.error) minimum = { h: grid[best], error: errors[best] };
    root.numbers = { grid, errors, empty, minimum };
    put(lowest, "cx", chart.x(minimum.h));
    put(lowest, "cy", chart.y(minimum.error));
    at();
  };

  /** The mark at the bandwidth of now. */
  const at = () => {
    if (!minimum) return;
    const now = size(store.get().settings);
    put(mark, "d", `M${within(chart.x(now), ...chart.xRange)} ${chart.yRange[1]}V${chart.yRange[0]}`);
    const lost = empty.findIndex((count) => count === 0);
    const text = isFound ? words("path.best." + kind(), { h: shown(minimum.h, 4), error: words.number(minimum.error, 4) }) : words("computing");
    const gaps = lost > 0 ? " " + words("path.empty", { h: shown(grid[lost - 1]) }) : "";
    put(readout, "text", text + gaps);
    chart.label(text + gaps);
    handle.place({ low: grid[0], high: grid.at(-1), now, text: shown(now), called: words("path." + kind()) });
  };

  /** Errors of the whole grid, every fourth first, so that the shape shows early. */
  function* fill(data, settings) {
    function* errorAt(h) {
      return yield* leftOut(makePool(data, { ...settings, ...resized(settings, h) }), data);
    }
    for (const every of [4, 2, 1]) {
      for (let k = 0; k < grid.length; k += every) {
        if (Number.isFinite(errors[k])) continue;
        const found = yield* errorAt(grid[k]);
        errors[k] = found.error;
        empty[k] = found.empty;
      }
      show();
    }
    // Between the neighbours of the best point, by golden sections; of many rows the grid is good enough.
    const best = lowestOf(errors);
    if (data.n > REFINED || best < 1 || best > grid.length - 2) return;
    if (isNearest(settings)) {
      for (let k = grid[best - 1] + 1; k < grid[best + 1]; k++) {
        const { error } = yield* errorAt(k);
        if (error < minimum.error) minimum = { h: k, error };
      }
      return show();
    }
    const [from, to] = [best - 1, best + 1].map((k) => Math.log(grid[k]));
    const found = yield* goldenMinimum(from, to, function* (at) {
      return (yield* errorAt(Math.exp(at))).error;
    });
    minimum = { h: Math.exp(found.at), error: found.value };
    show();
  }

  return {
    update() {
      const { settings } = store.get();
      const { bandwidth, neighbors, ...rest } = settings;
      const data = context.data();
      const now = isNearest(settings) ? 1 : size(settings);
      // Ratios between the columns' bandwidths, to the digits that a common factor leaves alone.
      const key = [data, JSON.stringify([rest, bandwidth.map((h, a) => (h / now / (one() ? 1 : start[a])).toPrecision(9))])];
      if (made && key.every((part, i) => part === made[i])) return at();
      made = key;
      stop();
      grid = isNearest(settings) ? neighborGrid(...neighborRange(data, settings)) : pathGrid(data, bandwidth, now);
      errors = new Float64Array(grid.length).fill(NaN);
      empty = new Float64Array(grid.length);
      minimum = null;
      isFound = isWanted = false;
      put(readout, "text", words("computing"));
      stop = gradually(context, root, fill(data, settings), () => {
        isFound = true;
        show();
        if (isWanted && minimum) choose(minimum.h);
        isWanted = false;
      });
    },
    destroy() {
      stop();
      chart.destroy();
    },
  };
}

/** The minimum of a function that is a generator, between two ends, by golden sections. */
function* goldenMinimum(from, to, of) {
  let [a, b] = [to - GOLDEN * (to - from), from + GOLDEN * (to - from)];
  let [low, high] = [yield* of(a), yield* of(b)];
  while (to - from > 1e-4) {
    if (low < high) {
      [to, b, high, a] = [b, a, low, b - GOLDEN * (b - from)];
      low = yield* of(a);
    } else {
      [from, a, low, b] = [a, b, high, a + GOLDEN * (to - a)];
      high = yield* of(b);
    }
  }
  return low < high ? { at: a, value: low } : { at: b, value: high };
}

/** Where the smallest number is; NaN does not count. */
function lowestOf(numbers) {
  return numbers.reduce((least, one, k) => (one < numbers[least] || Number.isNaN(numbers[least]) ? k : least), 0);
}

function meanOf(numbers) {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

/** Numbers of neighbors, a nearly constant factor apart. */
function neighborGrid(least, most) {
  return Float64Array.from(new Set(spaced(Math.log(least), Math.log(most), GRID).map((one) => Math.round(Math.exp(one)))));
}

/** From what only next neighbours see to what sees everything, by the column that matters most. */
function pathGrid(data, bandwidth, now) {
  const whole = now * Math.max(...bandwidth.map((h, a) => (data.high[a] - data.low[a] || 1) / h));
  return spaced(Math.log(whole / Math.min(500, Math.max(20, 4 * data.n))), Math.log(2 * whole), GRID).map(Math.exp);
}
