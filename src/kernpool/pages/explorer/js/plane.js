// Local linear fits: a plane through the keys around a query, by weighted least squares.
//
// With offsets t = (k - q) / h, weighted means and covariances C of t and s of t with the values, the slope is C^-1 s and
// the fit mean(v) - mean(t) slope. Covariances are sums over deviations from the means, in a second pass over the keys:
// as a difference of sums they would lose as many digits as the spread of the keys is small beside their distance.
// Where that spread is below 1e-4 of the distance a slope is not determined, and the fit is constant in that direction,
// as that of the estimators is. `kernpool.pool` goes on to fit such a query from its nearest keys.

import { invertDesign } from "./design.js";

/**
 * Fit a plane.
 * @param {Float64Array} weight of all keys, with their sum, `total`
 * @returns {{value: number[], slope: Float64Array, rank: number}} slope per unit of the column, column by column
 */
export function fitPlane(data, bandwidth, query, weight, total) {
  const d = data.numeric.length, outputs = data.outputs.length, n = data.n;
  const meanOffset = data.numeric.map((key, a) => {
    let sum = 0;
    for (let i = 0; i < n; i++) if (weight[i] > 0) sum += weight[i] * ((key[i] - query.numeric[a]) / bandwidth[a]);
    return sum / total;
  });
  const meanValue = data.centered.map((centered) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += weight[i] * centered[i];
    return sum / total;
  });
  const design = new Float64Array(d * d), cross = new Float64Array(d * outputs);
  addDeviations(data, bandwidth, query, weight, meanOffset, meanValue, design, cross);
  const unit = meanOffset.map((mean, a) => Math.sqrt(design[a * d + a] / total + mean * mean) || 1);
  for (let a = 0; a < d; a++) {
    for (let b = 0; b < d; b++) design[a * d + b] /= total * unit[a] * unit[b];
    for (let j = 0; j < outputs; j++) cross[a * outputs + j] /= total * unit[a];
  }
  const inverse = new Float64Array(d * d), rank = invertDesign(design, d, inverse);
  const slope = new Float64Array(d * outputs), value = meanValue.map((mean, j) => {
    let fitted = mean;
    for (let a = 0; a < d; a++) {
      let along = 0;
      for (let b = 0; b < d; b++) along += inverse[a * d + b] * cross[b * outputs + j];
      fitted -= (meanOffset[a] / unit[a]) * along;
      slope[a * outputs + j] = along / unit[a] / bandwidth[a];
    }
    return data.center[j] + fitted;
  });
  return { value, slope, rank };
}

/** Add up products of the deviations of offsets from their means with each other and with those of the values. */
function addDeviations(data, bandwidth, query, weight, meanOffset, meanValue, design, cross) {
  const d = data.numeric.length, outputs = data.outputs.length, deviation = new Float64Array(d);
  for (let i = 0; i < weight.length; i++) {
    const w = weight[i];
    if (!(w > 0)) continue;
    for (let a = 0; a < d; a++) {
      deviation[a] = (data.numeric[a][i] - query.numeric[a]) / bandwidth[a] - meanOffset[a];
      for (let b = 0; b <= a; b++) design[a * d + b] += w * deviation[a] * deviation[b];
      for (let j = 0; j < outputs; j++) {
        cross[a * outputs + j] += w * deviation[a] * (data.centered[j][i] - meanValue[j]);
      }
    }
  }
  for (let a = 0; a < d; a++) for (let b = a + 1; b < d; b++) design[a * d + b] = design[b * d + a];
}
