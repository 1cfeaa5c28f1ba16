/** Leave-one-out a row at a time, for work in idle slices. */
import { makePool } from "./pool.js";
import { means } from "./settle.js";
import { makeSlice } from "./slice.js";

/**
 * Predict every row from the others. An empty window is predicted by the mean of the others, as the engine does.
 * @returns {Generator} a row at a time; finally {value, residual: outputs x n, error: weighted mean over rows of the
 *     squared residual, summed over outputs, empty: number of empty windows}
 */
export function* leftOut(data, settings) {
  const { n, outputs, weight, numeric, categorical } = data;
  const pool = makePool(data, { ...settings, empty: "nan" });
  // Along a single column the others in reach are a window of the sorted keys.
  const isAlone = numeric.length === 1 && !categorical.length;
  const slice = isAlone ? makeSlice(data, { ...settings, empty: "nan" }, 0, { numeric: [0], codes: [] }) : null;
  const own = new Float64Array(outputs.length);
  const total = weight ? weight.reduce((sum, w) => sum + w, 0) : n;
  const value = new Float64Array(outputs.length * n);
  const residual = new Float64Array(outputs.length * n);
  let error = 0;
  let empty = 0;
  for (let i = 0; i < n; i++) {
    let fit = own;
    if (slice) slice(numeric[0][i], i, own);
    else fit = pool.value({ numeric: numeric.map((column) => column[i]), codes: categorical.map(({ codes }) => codes[i]) }, i);
    if (Number.isNaN(fit[0])) {
      empty += 1;
      fit = means(data, i);
    }
    for (let j = 0; j < outputs.length; j++) {
      value[j * n + i] = fit[j];
      residual[j * n + i] = outputs[j][i] - fit[j];
      error += ((weight ? weight[i] : 1) / total) * residual[j * n + i] ** 2;
    }
    yield i;
  }
  return { value, residual, error, empty };
}
