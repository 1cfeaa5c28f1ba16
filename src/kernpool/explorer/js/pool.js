// Attention pooling: for a query the weights of all keys, and the value, or local plane, that they give.
//
// weight_j = w_j K(|q - k_j| / h) x the factors of the categorical columns, as a share of their sum.

import { makeSlice } from "./fit_along_column.js";
import { KERNELS } from "./kernels.js";
import { makePlane, weightedMean } from "./local_linear.js";
import { makeFinalize, nearestKey } from "./finalize.js";
import { makeWeigher, penaltyOf } from "./similarity.js";

/**
 * Make a pool of the rows of some data. A query is {numeric: a number per numeric column, codes: a level per other
 * one}.
 *
 * at(query, self): what a query sees, see `describe`; value(query, self): the fit alone; values(queries): of many;
 * curve(column, places, query): along a numeric column, with all else as in the query. Of m fits output j of fit i is
 * at j * m + i. With a row as `self` one row of its weight is left out: what the others say of it.
 * @param data from readData
 * @param settings {kernel, bandwidth: number[], composition: "radial" | "product", degree: 0 | 1, smoothing: number[]},
 * and what a model may add: ridge, empty, priorShare; widths and neighbors, see widths.js
 */
export function makePool(data, settings) {
  const fit = makeFit(data, settings, makeWeigher(data, settings)), value = makeValue(data, settings, fit);
  const sliceThrough = remembered(data, settings);
  return {
    data, settings, kernel: KERNELS[settings.kernel], value,
    at: (query, self = -1) => describe(data, settings, fit, query, self),
    values: (queries) => collect(data.outputs.length, queries.length, (i, out) => out.set(value(queries[i]))),
    curve(column, places, query) {
      const slice = sliceThrough(column, query);
      return collect(data.outputs.length, places.length, (i, out) => slice(places[i], -1, out));
    },
  };
}

/** Make slices, and keep the last one: along a curve that is drawn in parts, or asked again, only places change. */
function remembered(data, settings) {
  let known = "", slice = null;
  return (column, query) => {
    const held = JSON.stringify([column, Array.from(query.numeric, (q, a) => (a === column ? 0 : q)), query.codes]);
    if (held !== known) slice = makeSlice(data, settings, column, query);
    known = held;
    return slice;
  };
}

/** Make value(query, self); of one column alone by windows of its order. */
function makeValue(data, settings, fit) {
  if (data.numeric.length === 1 && !data.categorical.length && !data.group) {
    const slice = makeSlice(data, settings, 0, { numeric: [0], codes: [] });
    return (query, self = -1) => {
      const value = new Float64Array(data.outputs.length);
      slice(query.numeric[0], self, value);
      return value;
    };
  }
  const weight = new Float64Array(data.n);
  return (query, self = -1) => fit(query, self, weight).value;
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

/** Make fit(query, self, weight), which writes the weights of all keys and fits a constant or a plane through them. */
function makeFit(data, settings, weigh) {
  const { n, numeric, centered } = data, c = centered.length, penalty = penaltyOf(data, settings);
  const plane = settings.degree ? makePlane(numeric, centered, weigh.bandwidth, data.periods) : null;
  const finalize = makeFinalize(data, settings);
  return (query, self, weight) => {
    const total = weigh(query, self, weight), isEmpty = !(total > 0), value = new Float64Array(c);
    const slope = plane ? new Float64Array(c * numeric.length).fill(NaN) : null;
    let rank = 0;
    if (!isEmpty && plane) rank = plane(query.numeric, weight, 0, n, total, penalty(weigh.shift), value, slope);
    else if (!isEmpty) for (let j = 0; j < c; j++) value[j] = weightedMean(centered[j], weight, 0, n, total);
    finalize(query, self, isEmpty, value);
    return { total, isEmpty, value, slope, rank, bandwidth: Array.from(weigh.bandwidth) };
  };
}

/**
 * What a query sees.
 *
 * weight: shares of all keys, all zero where the window is empty; value: one number per output, by default NaN there;
 * slope: of column a and output j at a * outputs + j, per unit of the column, null for degree 0; rank: in how many
 * directions the keys determine a slope; effectiveSize: 1 / sum of weight^2 over unit rows; reach: how many keys have
 * a weight; empty: whether none has; nearest: the key at the least distance; bandwidth: of the window, per column.
 */
function describe(data, settings, fit, query, self) {
  const weight = new Float64Array(data.n), { total, isEmpty, value, slope, rank, bandwidth } = fit(query, self, weight);
  let square = 0, reach = 0;
  for (let i = 0; i < data.n; i++) {
    if (weight[i] > 0) reach += 1;
    weight[i] = isEmpty ? 0 : weight[i] / total;
    if (weight[i] > 0) square += weight[i] * (data.weight ? weight[i] / data.weight[i] : weight[i]);
  }
  const effectiveSize = isEmpty ? 0 : 1 / square, nearest = nearestKey(data, settings, query, self);
  return { weight, value, slope, rank, reach, effectiveSize, nearest, bandwidth, empty: isEmpty };
}
