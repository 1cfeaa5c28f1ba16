// Local linear fits: a plane through the keys around a query, by weighted least squares.
//
// With offsets t = (k - q) / h, along the tangent where a column is a circle, weighted means and covariances C of t
// and s of t with the values, the slope is C^-1 s and the fit mean(v) - mean(t) slope. Covariances are sums over
// deviations from the means, in a second pass over the keys: as a difference of sums they would lose as many digits
// as the spread of the keys is small beside their distance. Where that spread is below 1e-4 of the distance a slope
// is not determined, and the fit is constant in that direction, as in `kernpool.core.local_fit`.

import { alongTangent } from "./circle.js";
import { invertDesign } from "./design.js";

/**
 * Make fit(place, weight, from, to, total, penalty, value, slope) for keys in some order.
 *
 * A penalty on squared slopes per bandwidth, in units of the weights, draws them towards zero. It writes the fit,
 * less the center of the values, into `value` and the slope, per unit of the column, into `slope` (of column a and
 * output j at a * outputs + j), and returns in how many directions the keys determine one. Weights of keys before
 * `from` and from `to` on are not looked at.
 * @param {Float64Array[]} keys per column @param {Float64Array[]} outputs less their centers
 * @param {(number | null)[]} periods of columns that are circles
 */
export function makePlane(keys, outputs, bandwidth, periods) {
  const d = keys.length, c = outputs.length;
  const deviations = keys.map((key) => new Float64Array(key.length));
  const design = new Float64Array(d * d), inverse = new Float64Array(d * d), cross = new Float64Array(d * c);
  const offset = new Float64Array(d), unit = new Float64Array(d), tilt = new Float64Array(d);
  const fit = (place, weight, from, to, total, penalty, value, slope) => {
    for (let j = 0; j < c; j++) value[j] = weightedMean(outputs[j], weight, from, to, total);
    for (let a = 0; a < d; a++) {
      offset[a] = deviate(keys[a], place[a], bandwidth[a], weight, from, to, total, deviations[a], periods[a]);
      for (let b = 0; b <= a; b++) {
        design[a * d + b] = design[b * d + a] = product(deviations[a], deviations[b], weight, from, to) / total;
      }
      for (let j = 0; j < c; j++) {
        cross[a * c + j] = productWithValues(deviations[a], outputs[j], value[j], weight, from, to) / total;
      }
      design[a * d + a] += penalty / total;
      unit[a] = Math.sqrt(design[a * d + a] + offset[a] * offset[a]) || 1;
    }
    for (let a = 0; a < d; a++) {
      for (let b = 0; b < d; b++) design[a * d + b] /= unit[a] * unit[b];
      for (let j = 0; j < c; j++) cross[a * c + j] /= unit[a];
    }
    const rank = invertDesign(design, d, inverse);
    for (let b = 0; b < d; b++) {
      tilt[b] = 0;
      for (let a = 0; a < d; a++) tilt[b] -= ((offset[a] / unit[a]) * inverse[a * d + b]) / unit[b];
    }
    for (let a = 0; a < d; a++) {
      for (let j = 0; j < c; j++) {
        let along = 0;
        for (let b = 0; b < d; b++) along += inverse[a * d + b] * cross[b * c + j];
        slope[a * c + j] = along / unit[a] / bandwidth[a];
        value[j] -= (offset[a] / unit[a]) * along;
      }
    }
    return rank;
  };
  /** The shares of the keys in the last fit. */
  fit.shares = (weight, from, to, total, out) => {
    for (let i = from; i < to; i++) {
      let factor = 1;
      for (let b = 0; b < d; b++) factor += tilt[b] * deviations[b][i];
      out[i] = (weight[i] / total) * factor;
    }
  };
  return fit;
}

/** The weighted mean of one array. */
export function weightedMean(values, weight, from, to, total) {
  let sum = 0;
  for (let i = from; i < to; i++) sum += weight[i] * values[i];
  return sum / total;
}

/** Write the deviations of the offsets of keys from their mean, and return that; zero for keys without a weight. */
function deviate(key, place, h, weight, from, to, total, out, period) {
  let sum = 0;
  for (let i = from; i < to; i++) {
    out[i] = alongTangent(key[i], place, period) / h;
    sum += weight[i] > 0 ? weight[i] * out[i] : 0;
  }
  const mean = sum / total;
  for (let i = from; i < to; i++) out[i] = weight[i] > 0 ? out[i] - mean : 0;
  return mean;
}

function product(one, other, weight, from, to) {
  let sum = 0;
  for (let i = from; i < to; i++) sum += weight[i] * one[i] * other[i];
  return sum;
}

function productWithValues(deviation, values, mean, weight, from, to) {
  let sum = 0;
  for (let i = from; i < to; i++) sum += weight[i] * deviation[i] * (values[i] - mean);
  return sum;
}
