// Similarities of a query with all keys, and what they weigh.

import { exponentials } from "./exponential.js";
import { FACTORS, KERNELS } from "./kernels.js";

/**
 * Make weigh(query, self, out), which writes the weights of all keys in units of the largest one and returns their sum.
 *
 * Weights of compact kernels are profiles, which keep their digits at the edge. All others are logits less the largest
 * one, so that a query far from all keys has the weights of its nearest ones. `self` is a row of which one is left out.
 */
export function makeWeigher(data, settings) {
  const { numeric, categorical, n } = data, { bandwidth } = settings;
  const kernel = KERNELS[settings.kernel], byColumn = isByColumn(data, settings);
  const tables = categorical.map((column, b) => factorTable(column, settings.smoothing[b]));
  const inLogs = isInLogs(data, settings, tables), similarities = inLogs ? kernel.logProfiles : kernel.profiles;
  const combine = inLogs ? addTo : multiplyOnto, one = byColumn ? new Float64Array(n) : null;
  const logTables = inLogs ? tables.map((table) => table.map(Math.log)) : tables;
  return (query, self, out) => {
    if (byColumn) {
      out.fill(inLogs ? 0 : 1);
      numeric.forEach((key, a) => {
        distances(key, query.numeric[a], bandwidth[a], one);
        similarities(one, 0, n);
        combine(out, one);
      });
    } else {
      radialDistances(numeric, query.numeric, bandwidth, out);
      similarities(out, 0, n);
    }
    categorical.forEach((column, b) => combine(out, factorsOf(column, logTables[b], query.codes[b])));
    return inLogs ? fromLogits(out, data.weight, self) : fromProfiles(out, data.weight, self);
  };
}

/** Whether columns count one by one. */
export function isByColumn(data, settings) {
  return settings.composition === "product" && data.numeric.length > 1;
}

/** Whether similarities are logarithms, because products of them could underflow. */
export function isInLogs(data, settings, tables) {
  const smallest = tables.reduce((product, table) => product * Math.min(1, ...table.filter((factor) => factor > 0)), 1);
  const deep = isByColumn(data, settings) && data.numeric.length > 5;
  return !Number.isFinite(KERNELS[settings.kernel].support) || deep || smallest < 1e-150;
}

/** Factors of all pairs of levels. @param column of data.categorical @param {number} smoothing @returns {Float64Array} */
export function factorTable(column, smoothing) {
  const count = column.levels.length, factor = FACTORS[column.kernel];
  return count === 1 ? new Float64Array([1]) : column.distances.map((distance) => factor(distance, smoothing, count));
}

/** What a table says of a level and those of the keys; -1, a level that is not known, is as unlike as first and last. */
export function factorsOf(column, table, level) {
  const count = column.levels.length, { codes } = column, row = new Float64Array(count);
  for (let k = 0; k < count; k++) row[k] = level < 0 ? table[count - 1] : table[level * count + k];
  return Float64Array.from(codes, (code) => row[code]);
}

/** Distances in bandwidths along one column. @param {Float64Array} out receives them */
export function distances(key, place, h, out) {
  for (let i = 0; i < key.length; i++) out[i] = Math.abs((place - key[i]) / h);
}

function radialDistances(numeric, place, bandwidth, out) {
  if (numeric.length === 1) {
    distances(numeric[0], place[0], bandwidth[0], out);
    return;
  }
  out.fill(0);
  numeric.forEach((key, a) => addSquares(key, place[a], bandwidth[a], out));
  for (let i = 0; i < out.length; i++) out[i] = Math.sqrt(out[i]);
}

/** Add the squared distances along one column. */
export function addSquares(key, place, h, out) {
  for (let i = 0; i < key.length; i++) {
    const u = (place - key[i]) / h;
    out[i] += u * u;
  }
}

export function addTo(out, terms) {
  for (let i = 0; i < out.length; i++) out[i] += terms[i];
}

export function multiplyOnto(out, factors) {
  for (let i = 0; i < out.length; i++) out[i] *= factors[i];
}

/** What is left of the weight of a row once one of it is taken away. */
export function withoutOne(times, self) {
  return times ? Math.max(times[self] - 1, 0) : 0;
}

function fromProfiles(out, times, self) {
  if (self >= 0) out[self] *= times && times[self] > 0 ? withoutOne(times, self) / times[self] : 0;
  let total = 0;
  for (let i = 0; i < out.length; i++) {
    if (times) out[i] *= times[i];
    total += out[i];
  }
  return total;
}

function fromLogits(out, times, self) {
  if (self >= 0 && !(withoutOne(times, self) > 0)) out[self] = -Infinity;
  let largest = -Infinity;
  for (let i = 0; i < out.length; i++) {
    if (times && !(times[i] > 0)) out[i] = -Infinity;
    else if (out[i] > largest) largest = out[i];
  }
  if (largest === -Infinity) {
    out.fill(0);
    return 0;
  }
  exponentials(out, 0, out.length, largest);
  if (self >= 0 && times && out[self] > 0) out[self] *= withoutOne(times, self) / times[self];
  let total = 0;
  for (let i = 0; i < out.length; i++) {
    if (times) out[i] *= times[i];
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
