// Attention pooling: for a query the weights of all keys, and the value, or local plane, that they give.
//
// weight_j = w_j K(|q - k_j| / h) x the factors of the categorical columns, as a share of their sum.

import { FACTORS, KERNELS } from "./kernels.js";
import { fitPlane } from "./plane.js";

/**
 * Make a pool of the rows of some data.
 * @param data from readData
 * @param {{kernel: string, bandwidth: number[], composition: "radial" | "product", degree: 0 | 1, smoothing: number[]}} settings
 * @returns {{at, value, values, curve, weights, data, settings, kernel}}
 */
export function makePool(data, settings) {
  const weigh = makeWeigher(data, settings);
  const scratch = new Float64Array(data.n);
  const value = (query, self = -1) => fit(data, settings, weigh, query, self, scratch).value;
  return {
    data, settings, kernel: KERNELS[settings.kernel],
    weights: (query, self = -1, out = new Float64Array(data.n)) => (weigh(query, self, out), out),
    at: (query, self = -1) => describe(data, settings, weigh, query, self),
    value,
    values: (queries) => collect(data.outputs.length, queries.length, (i) => value(queries[i])),
    curve(column, places, query) {
      const numeric = Array.from(query.numeric), codes = query.codes;
      return collect(data.outputs.length, places.length, (i) => {
        numeric[column] = places[i];
        return value({ numeric, codes });
      });
    },
  };
}

/** Fits of m queries as one array: output j of query i at j * m + i. */
function collect(outputs, m, valueOf) {
  const all = new Float64Array(outputs * m);
  for (let i = 0; i < m; i++) {
    const value = valueOf(i);
    for (let j = 0; j < outputs; j++) all[j * m + i] = value[j];
  }
  return all;
}

/**
 * What a query sees.
 *
 * weight: shares of all keys, all zero where the window is empty; value: one number per output, NaN where empty;
 * slope: of column a and output j at a * outputs + j, per unit of the column, null for degree 0; rank: in how many
 * directions keys determine a slope; effectiveSize: 1 / sum of weight^2; reach: how many keys have a weight;
 * nearest: the key at the least distance.
 */
function describe(data, settings, weigh, query, self) {
  const weight = new Float64Array(data.n);
  const { total, value, slope, rank } = fit(data, settings, weigh, query, self, weight);
  let square = 0, reach = 0;
  for (let i = 0; i < data.n; i++) {
    if (weight[i] > 0) reach += 1;
    if (total > 0) weight[i] /= total;
    square += weight[i] * weight[i];
  }
  return {
    weight, value, slope, rank, reach, empty: !(total > 0),
    effectiveSize: total > 0 ? 1 / square : 0,
    nearest: nearestKey(data, settings, query, self),
  };
}

function fit(data, settings, weigh, query, self, weight) {
  const total = weigh(query, self, weight);
  if (!(total > 0)) return { total, value: data.outputs.map(() => NaN), slope: null, rank: 0 };
  if (settings.degree === 1) return { total, ...fitPlane(data, settings.bandwidth, query, weight, total) };
  const value = data.centered.map((centered, j) => {
    let sum = 0;
    for (let i = 0; i < weight.length; i++) sum += weight[i] * centered[i];
    return data.center[j] + sum / total;
  });
  return { total, value, slope: null, rank: 0 };
}

/**
 * Return weigh(query, self, out): writes weights in units of the largest one and returns their sum.
 *
 * Weights of compact kernels are profiles, which keep their digits at the edge; all others are logits less the largest,
 * so that a query far from all keys has the weights of its nearest ones.
 */
function makeWeigher(data, settings) {
  const kernel = KERNELS[settings.kernel];
  const tables = data.categorical.map((column, b) => factorTable(column, settings.smoothing[b]));
  const smallest = tables.reduce((product, table) => product * Math.min(...table.filter((factor) => factor > 0)), 1);
  const times = multiplicity(data);
  const byColumn = settings.composition === "product" && data.numeric.length > 1;
  const underflows = (byColumn && data.numeric.length > 5) || smallest < 1e-150;
  const inLogs = !Number.isFinite(kernel.support) || underflows;
  const profile = inLogs ? kernel.logProfile : kernel.profile;
  const logTables = inLogs ? tables.map((table) => table.map(Math.log)) : tables;
  return (query, self, out) => {
    if (byColumn) productSimilarity(data, settings.bandwidth, profile, inLogs, query, out);
    else radialSimilarity(data, settings.bandwidth, profile, query, out);
    data.categorical.forEach((column, b) => applyTable(column, logTables[b], query.codes[b], inLogs, out));
    return inLogs ? fromLogits(out, times, self) : fromProfiles(out, times, self);
  };
}

/** How often each key counts: null for once. */
function multiplicity(data) {
  return data.weight;
}

function radialSimilarity(data, bandwidth, profile, query, out) {
  const n = data.n;
  if (data.numeric.length === 1) {
    const key = data.numeric[0], q = query.numeric[0], h = bandwidth[0];
    for (let i = 0; i < n; i++) out[i] = profile(Math.abs((q - key[i]) / h));
    return;
  }
  out.fill(0);
  data.numeric.forEach((key, a) => {
    const q = query.numeric[a], h = bandwidth[a];
    for (let i = 0; i < n; i++) {
      const u = (q - key[i]) / h;
      out[i] += u * u;
    }
  });
  for (let i = 0; i < n; i++) out[i] = profile(Math.sqrt(out[i]));
}

function productSimilarity(data, bandwidth, profile, inLogs, query, out) {
  out.fill(inLogs ? 0 : 1);
  data.numeric.forEach((key, a) => {
    const q = query.numeric[a], h = bandwidth[a];
    for (let i = 0; i < data.n; i++) {
      const one = profile(Math.abs((q - key[i]) / h));
      if (inLogs) out[i] += one;
      else out[i] *= one;
    }
  });
}

/** Multiply the factors of a categorical column onto similarities; a level of -1 is as unlike as first and last. */
function applyTable(column, table, level, inLogs, out) {
  const count = column.levels.length, { codes } = column;
  for (let i = 0; i < out.length; i++) {
    const factor = level < 0 ? table[count - 1] : table[level * count + codes[i]];
    if (inLogs) out[i] += factor;
    else out[i] *= factor;
  }
}

/** Factors of all pairs of levels. @param column of data.categorical @param {number} smoothing @returns {Float64Array} */
export function factorTable(column, smoothing) {
  const count = column.levels.length, factors = FACTORS[column.kernel];
  if (count === 1) return new Float64Array([1]);
  return column.distances.map((distance) => factors(distance, smoothing, count));
}

/** What is left of a key's weight once one row of it is taken away. */
function withoutOne(times, self) {
  return times ? Math.max(times[self] - 1, 0) : 0;
}

function fromProfiles(out, times, self) {
  let total = 0;
  for (let i = 0; i < out.length; i++) {
    if (i === self) out[i] *= withoutOne(times, self);
    else if (times) out[i] *= times[i];
    total += out[i];
  }
  return total;
}

function fromLogits(out, times, self) {
  let largest = -Infinity, total = 0;
  for (let i = 0; i < out.length; i++) {
    const takesPart = i === self ? withoutOne(times, self) > 0 : !times || times[i] > 0;
    if (!takesPart) out[i] = -Infinity;
    else if (out[i] > largest) largest = out[i];
  }
  if (largest === -Infinity) {
    out.fill(0);
    return 0;
  }
  for (let i = 0; i < out.length; i++) {
    const share = Math.exp(out[i] - largest);
    out[i] = times && share > 0 ? share * (i === self ? withoutOne(times, self) : times[i]) : share;
    total += out[i];
  }
  return total;
}

/** The key at the least distance in bandwidths, of those that take part; -1 for none. */
export function nearestKey(data, settings, query, self = -1) {
  let nearest = -1, least = Infinity;
  for (let i = 0; i < data.n; i++) {
    const times = data.weight ? data.weight[i] : 1;
    if (!((i === self ? times - 1 : times) > 0)) continue;
    let square = 0;
    for (let a = 0; a < data.numeric.length; a++) {
      square += ((query.numeric[a] - data.numeric[a][i]) / settings.bandwidth[a]) ** 2;
    }
    if (square < least) {
      least = square;
      nearest = i;
    }
  }
  return nearest;
}
