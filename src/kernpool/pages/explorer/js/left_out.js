/** Leave-one-out a row at a time, for work in idle slices. */

/**
 * Predict every row from the others. An empty window is predicted by the mean of the others, as the engine does.
 * @returns {Generator} a row at a time; finally {value, residual: outputs x n, error: weighted mean over rows of the
 *     squared residual, summed over outputs, empty: number of empty windows}
 */
export function* leftOut(pool, data) {
  const { n, outputs, weight, numeric, categorical } = data;
  const times = (i) => (weight ? weight[i] : 1);
  const value = new Float64Array(outputs.length * n);
  const residual = new Float64Array(outputs.length * n);
  const total = weight ? weight.reduce((sum, w) => sum + w, 0) : n;
  const sums = data.centered.map((output) => output.reduce((sum, y, i) => sum + times(i) * y, 0));
  let error = 0;
  let empty = 0;
  for (let i = 0; i < n; i++) {
    const fit = pool.value({ numeric: numeric.map((column) => column[i]), codes: categorical.map(({ codes }) => codes[i]) }, i);
    const isEmpty = Number.isNaN(fit[0]);
    if (isEmpty) empty += 1;
    const unit = Math.min(1, times(i));
    for (let j = 0; j < outputs.length; j++) {
      value[j * n + i] = isEmpty ? data.center[j] + (sums[j] - unit * data.centered[j][i]) / (total - unit) : fit[j];
      residual[j * n + i] = outputs[j][i] - value[j * n + i];
      error += (times(i) / total) * residual[j * n + i] ** 2;
    }
    yield i;
  }
  return { value, residual, error, empty };
}
