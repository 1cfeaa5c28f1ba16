// Attention pooling: for a query the weights of all keys, and the value, or local plane, that they give.
//
// weight_j = w_j K(|q - k_j| / h) x the factors of the categorical columns, as a share of their sum.

import { makeSlice } from "./slice.js";
import { KERNELS } from "./kernels.js";
import { makePlane, weightedMean } from "./plane.js";
import { makeWeigher, nearestKey } from "./similarity.js";

/**
 * Make a pool of the rows of some data. A query is {numeric: a number per numeric column, codes: a level per other one}.
 *
 * at(query, self): what a query sees, see `describe`; values(queries): fits; curve(column, places, query): fits along a
 * numeric column, with all else as in the query. Of m fits output j of fit i is at j * m + i; it is NaN where no key is
 * in reach. Leave `self` out, a row, to see what the others say of it: one row of its weight.
 * @param data from readData
 * @param {{kernel: string, bandwidth: number[], composition: "radial" | "product", degree: 0 | 1, smoothing: number[]}} settings
 */
export function makePool(data, settings) {
  const weigh = makeWeigher(data, settings), fit = makeFit(data, settings), weight = new Float64Array(data.n);
  const value = (query, self = -1) => fit(query, weight, weigh(query, self, weight)).value;
  return {
    data, settings, kernel: KERNELS[settings.kernel], value,
    at: (query, self = -1) => describe(data, settings, weigh, fit, query, self),
    values: (queries) => collect(data.outputs.length, queries.length, (i, out) => out.set(value(queries[i]))),
    curve(column, places, query) {
      const slice = makeSlice(data, settings, column, query);
      return collect(data.outputs.length, places.length, (i, out) => slice(places[i], -1, out));
    },
  };
}

/** Fits of m queries as one array. */
export function collect(outputs, m, write) {
  const all = new Float64Array(outputs * m), one = new Float64Array(outputs);
  for (let i = 0; i < m; i++) {
    write(i, one);
    for (let j = 0; j < outputs; j++) all[j * m + i] = one[j];
  }
  return all;
}

/** Make fit(query, weight, total): a constant or a plane through the keys. */
function makeFit(data, settings) {
  const { n, numeric, centered, center } = data, c = centered.length;
  const plane = settings.degree ? makePlane(numeric, centered, settings.bandwidth) : null;
  return (query, weight, total) => {
    const value = new Float64Array(c).fill(NaN), slope = plane ? new Float64Array(c * numeric.length).fill(NaN) : null;
    if (!(total > 0)) return { value, slope, rank: 0 };
    let rank = 0;
    if (plane) rank = plane(query.numeric, weight, 0, n, total, value, slope);
    else for (let j = 0; j < c; j++) value[j] = weightedMean(centered[j], weight, 0, n, total);
    for (let j = 0; j < c; j++) value[j] += center[j];
    return { value, slope, rank };
  };
}

/**
 * What a query sees.
 *
 * weight: shares of all keys, all zero where the window is empty; value: one number per output, NaN where empty;
 * slope: of column a and output j at a * outputs + j, per unit of the column, null for degree 0; rank: in how many
 * directions the keys determine a slope; effectiveSize: 1 / sum of weight^2; reach: how many keys have a weight;
 * empty: whether none has; nearest: the key at the least distance.
 */
function describe(data, settings, weigh, fit, query, self) {
  const weight = new Float64Array(data.n), total = weigh(query, self, weight), isEmpty = !(total > 0);
  const { value, slope, rank } = fit(query, weight, total);
  let square = 0, reach = 0;
  for (let i = 0; i < data.n; i++) {
    if (weight[i] > 0) reach += 1;
    weight[i] = isEmpty ? 0 : weight[i] / total;
    square += weight[i] * weight[i];
  }
  return {
    weight, value, slope, rank, reach, empty: isEmpty,
    effectiveSize: isEmpty ? 0 : 1 / square,
    nearest: nearestKey(data, settings, query, self),
  };
}
