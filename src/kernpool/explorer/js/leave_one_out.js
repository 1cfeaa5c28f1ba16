/** Leave-one-out predictions, a row at a time, for work while the browser is idle. */
import { means } from "./finalize.js";

/**
 * Predict every row from the others. An empty window is predicted by the mean of the others, as the engine does;
 * with groups the others are the rows of the other groups.
 * @returns {Generator} a row at a time; finally {value, residual: outputs x n, error: weighted mean over rows of the
 *     squared residual, summed over outputs, empty: number of empty windows}
 */
export function* leftOut(pool, data) {
  const { n, outputs, weight, numeric, categorical } = data;
  const total = weight ? weight.reduce((sum, w) => sum + w, 0) : n;
  const value = new Float64Array(outputs.length * n);
  const residual = new Float64Array(outputs.length * n);
  let error = 0;
  let empty = 0;
  for (let i = 0; i < n; i++) {
    let fit = pool.value({ numeric: numeric.map((column) => column[i]), codes: categorical.map(({ codes }) => codes[i]) }, i);
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
