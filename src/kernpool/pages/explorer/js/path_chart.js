/** Leave-one-out error over the bandwidth, or over a common factor of all: its minimum, and a mark that sets h. */
import { extent, linePath, linearScale, logScale, makeChart } from "./chart.js";
import { html, put } from "./dom.js";
import { path } from "./leave_one_out.js";
import { gradually, makeHandle, titled, within } from "./panel.js";

const POINTS = 41;

export function makePathChart(root, context) {
  const { store, words, payload } = context;
  titled(root, words("path.title"), words("path.note"));
  const chart = makeChart(root, { height: 230, left: 58 }, () => show());
  const line = chart.layer("path", { class: "kx-line" });
  const empties = chart.layer("path", { class: "kx-empty" });
  const lowest = chart.layer("circle", { class: "kx-lowest", r: 5 }, chart.over);
  const mark = chart.layer("path", { class: "kx-query" }, chart.over);
  const button = html("button", { type: "button", onclick: () => best && choose(grid[best]) }, words("path.go"));
  const readout = html("p", { class: "kx-readout" });
  root.append(html("div", { class: "kx-row" }, button, readout));
  // One column: h itself. Several: a factor of what the model has found.
  const start = (payload.fitted || payload.settings).bandwidth;
  const one = () => context.data().numeric.length === 1;
  const size = (bandwidth) => (one() ? bandwidth[0] : Math.exp(mean(bandwidth.map((h, a) => Math.log(h / start[a])))));
  let grid = [];
  let errors = [];
  let empty = [];
  let best = null;
  let made = null;
  let stop = () => {};

  const choose = (value) => {
    const { bandwidth } = store.get().settings;
    const factor = value / size(bandwidth);
    store.set({ settings: { bandwidth: bandwidth.map((h) => h * factor) } });
  };
  const handle = makeHandle(chart, {
    label: words(one() ? "path.handle" : "path.factor"),
    move: (at) => choose(within(at[0], grid[0], grid[POINTS - 1])),
    step: (steps) => choose(within(size(store.get().settings.bandwidth) * 1.05 ** steps, grid[0], grid[POINTS - 1])),
  });

  const show = () => {
    const known = errors.filter(Number.isFinite);
    if (!known.length) return;
    const [low, high] = extent([known], 0.08);
    chart.axes({
      x: logScale([grid[0], grid[POINTS - 1]], chart.xRange),
      y: linearScale([Math.max(0, low), high], chart.yRange),
      xLabel: words(one() ? "path.h" : "path.factor"),
      yLabel: words("path.error"),
    });
    put(line, "d", linePath(grid, errors, chart.x, chart.y));
    put(empties, "d", grid.map((h, k) => (empty[k] > 0 ? `M${chart.x(h).toFixed(1)} ${chart.yRange[0]}v-${(3 + (9 * empty[k]) / context.data().n).toFixed(1)}` : "")).join(""));
    best = errors.indexOf(Math.min(...known));
    put(lowest, "cx", chart.x(grid[best]));
    put(lowest, "cy", chart.y(errors[best]));
    at();
  };

  /** The mark at the bandwidth of now. */
  const at = () => {
    if (best === null) return;
    const now = size(store.get().settings.bandwidth);
    put(mark, "d", `M${within(chart.x(now), ...chart.xRange)} ${chart.yRange[1]}V${chart.yRange[0]}`);
    const lost = empty.findIndex((count) => count === 0);
    const text = words("path.best", { h: words.number(grid[best], 4), error: words.number(errors[best], 4) });
    const gaps = lost > 0 ? " " + words("path.empty", { h: words.number(grid[lost - 1]) }) : "";
    put(readout, "text", text + gaps);
    chart.label(text + gaps);
    handle.place({ low: grid[0], high: grid[POINTS - 1], now, text: words.number(now) });
  };

  return {
    update() {
      const { bandwidth, ...rest } = store.get().settings;
      const data = context.data();
      const now = size(bandwidth);
      // Ratios between the columns' bandwidths, to the digits that a common factor leaves alone.
      const key = [data, JSON.stringify([rest, bandwidth.map((h, a) => (h / now / (one() ? 1 : start[a])).toPrecision(9))])];
      if (made && key.every((part, i) => part === made[i])) return at();
      made = key;
      stop();
      grid = pathGrid(data, bandwidth, now);
      const found = { errors: new Array(POINTS).fill(NaN), empty: new Array(POINTS).fill(0) };
      stop = gradually(context, root, path(data, store.get().settings, grid.map((h) => h / now)), () => {});
    },
    destroy() {
      stop();
      chart.destroy();
    },
  };
}

function mean(numbers) {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}
