// Curves of many rows along one column: linear binning (Fan and Marron, JCGS 3, 1994), with an error that is measured.
//
// Every row is shared out to the two places of a grid around it, in proportion to how near it is; the grid is then
// pooled as weighted rows are. That replaces the kernel by its linear interpolation on the grid: with a step d the
// error is of the order (d / h)^2 where the kernel is smooth, and d / h at the edge of a boxcar. No bound for any
// kernel and any rows is near the truth, so that the exact fit is asked at some places, and the largest difference is
// what is shown.

import { makePool } from "./pool.js";

const STEPS_PER_BANDWIDTH = 40, FEWEST_BINS = 400, CHECKED = 25;

/**
 * A pool whose curve is binned where that pays: one numeric column alone, more rows than `exact`, and fewer places of
 * the grid than half the rows. All else is exact. Its `binned` is how many places the grid has, 0 for none; then
 * compare(places, query) looks at some of the places, one after the other, and returns how many these are and the
 * largest difference from the exact curve, of any output.
 */
export function makeQuickPool(data, settings, exact) {
  const pool = makePool(data, settings), bins = binsFor(data, settings, exact);
  if (!bins) return { ...pool, binned: 0 };
  const { curve } = makePool(binData(data, bins), settings);
  return { ...pool, curve, binned: bins, compare: (places, query) => compared(pool.curve, curve, places, query) };
}

function binsFor(data, settings, exact) {
  if (data.n <= exact || data.numeric.length !== 1 || data.categorical.length) return 0;
  const width = data.high[0] - data.low[0], fine = Math.ceil((STEPS_PER_BANDWIDTH * width) / settings.bandwidth[0]);
  const bins = Math.max(FEWEST_BINS, fine);
  return width > 0 && bins < data.n / 2 ? bins : 0;
}

/** Share rows out to an even grid: places that got some become rows, with weights and the means of their outputs. */
export function binData(data, bins) {
  const low = data.low[0], step = (data.high[0] - low) / (bins - 1), c = data.outputs.length;
  const total = new Float64Array(bins), sums = data.outputs.map(() => new Float64Array(bins));
  const give = (bin, share, i) => {
    total[bin] += share;
    for (let j = 0; j < c; j++) sums[j][bin] += share * data.centered[j][i];
  };
  for (let i = 0; i < data.n; i++) {
    const place = (data.numeric[0][i] - low) / step, left = Math.min(Math.floor(place), bins - 2), near = place - left;
    const times = data.weight ? data.weight[i] : 1;
    give(left, times * (1 - near), i);
    give(left + 1, times * near, i);
  }
  const kept = Int32Array.from(total.keys()).filter((bin) => total[bin] > 0), n = kept.length;
  const centered = sums.map((sum) => Float64Array.from(kept, (bin) => sum[bin] / total[bin]));
  return Object.freeze({
    ...data, n, centered,
    numeric: [Float64Array.from(kept, (bin) => low + bin * step)],
    outputs: centered.map((values, j) => values.map((value) => value + data.center[j])),
    weight: Float64Array.from(kept, (bin) => total[bin]),
    sorted: [Int32Array.from({ length: n }, (_, i) => i)],
  });
}

function* compared(exactly, binned, places, query) {
  const step = Math.max(1, Math.floor(places.length / CHECKED));
  let error = 0, count = 0;
  for (let i = 0; i < places.length; i += step) {
    const place = Float64Array.of(places[i]), one = exactly(0, place, query), other = binned(0, place, query);
    for (let j = 0; j < one.length; j++) {
      // A place that only one of both reaches is as wrong as can be.
      const isWrong = Number.isNaN(one[j]) !== Number.isNaN(other[j]);
      error = isWrong ? Infinity : Math.max(error, Math.abs(one[j] - other[j]) || 0);
    }
    count += 1;
    yield i;
  }
  return { error, count };
}
