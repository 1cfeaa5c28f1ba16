// Similarities of a query with all keys, and what they weigh.

import { chord } from "./circle.js";
import { exponentials } from "./exponential.js";
import { FACTORS, KERNELS } from "./kernels.js";
import { withoutOne } from "./order.js";
import { makeBandwidth } from "./widths.js";

/** Of a ridge beside a window: slopes are zero to the last digit long before. */
const LARGEST_EXPONENT = 300;

/**
 * Make weigh(query, self, out), which writes the weights of all keys in units of exp(weigh.shift), returns their sum.
 *
 * Weights of compact kernels are profiles, which keep their digits at the edge. All others are logits less the largest
 * one, so that a query far from all keys has the weights of its nearest ones. `self` is a row of which one is left out.
 * weigh.bandwidth has the bandwidths of the last query.
 */
export function makeWeigher(data, settings) {
  const { numeric, periods, categorical, n } = data, bandwidthAt = makeBandwidth(data, settings);
  const kernel = KERNELS[settings.kernel], byColumn = isByColumn(data, settings);
  const tables = categorical.map((column, b) => factorTable(column, settings.smoothing[b]));
  const inLogs = isInLogs(data, settings, tables), similarities = inLogs ? kernel.logProfiles : kernel.profiles;
  const combine = inLogs ? addTo : multiplyOnto, one = byColumn ? new Float64Array(n) : null;
  const logTables = inLogs ? tables.map((table) => table.map(Math.log)) : tables;
  const weigh = (query, self, out) => {
    const bandwidth = bandwidthAt(query.numeric[0], self);
    if (byColumn) {
      out.fill(inLogs ? 0 : 1);
      numeric.forEach((key, a) => {
        distances(key, query.numeric[a], bandwidth[a], one, periods[a]);
        similarities(one, 0, n);
        combine(out, one);
      });
    } else {
      radialDistances(data, query.numeric, bandwidth, out);
      similarities(out, 0, n);
    }
    categorical.forEach((column, b) => combine(out, factorsOf(column, logTables[b], query.codes[b])));
    const own = leaveGroupOut(data, self, inLogs ? -Infinity : 0, out);
    if (!inLogs) return fromProfiles(out, data.weight, own);
    weigh.shift = largestLogit(out, data.weight, own);
    return fromLogits(out, data.weight, own, weigh.shift);
  };
  weigh.shift = 0;
  weigh.bandwidth = bandwidthAt.now;
  return weigh;
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

/** Factors of all pairs of levels. @param column of data.categorical @returns {Float64Array} row by row */
export function factorTable(column, smoothing) {
  const count = column.levels.length, factor = FACTORS[column.kernel];
  return count === 1 ? new Float64Array([1]) : column.distances.map((distance) => factor(distance, smoothing, count));
}

/** What a table says of a level and those of the keys; -1, a level not known, is as unlike as first and last. */
export function factorsOf(column, table, level) {
  const count = column.levels.length, { codes } = column, row = new Float64Array(count);
  for (let k = 0; k < count; k++) row[k] = level < 0 ? table[count - 1] : table[level * count + k];
  return Float64Array.from(codes, (code) => row[code]);
}

/** Distances in bandwidths along one column. @param {Float64Array} out receives them */
export function distances(key, place, h, out, period) {
  for (let i = 0; i < key.length; i++) out[i] = Math.abs(chord(place, key[i], period) / h);
}

function radialDistances({ numeric, periods }, place, bandwidth, out) {
  if (numeric.length === 1) {
    distances(numeric[0], place[0], bandwidth[0], out, periods[0]);
    return;
  }
  out.fill(0);
  numeric.forEach((key, a) => addSquares(key, place[a], bandwidth[a], out, periods[a]));
  for (let i = 0; i < out.length; i++) out[i] = Math.sqrt(out[i]);
}

/** Add the squared distances along one column. */
export function addSquares(key, place, h, out, period) {
  for (let i = 0; i < key.length; i++) {
    const u = chord(place, key[i], period) / h;
    out[i] += u * u;
  }
}

export function addTo(out, terms) {
  for (let i = 0; i < out.length; i++) out[i] += terms[i];
}

export function multiplyOnto(out, factors) {
  for (let i = 0; i < out.length; i++) out[i] *= factors[i];
}

/** Take the group of a row out, if there are groups; return the row of which one is left out, else -1. */
function leaveGroupOut(data, self, nothing, out) {
  if (self < 0 || !data.group) return self;
  for (let i = 0; i < out.length; i++) if (data.group[i] === data.group[self]) out[i] = nothing;
  return -1;
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

function largestLogit(out, times, self) {
  if (self >= 0 && !(withoutOne(times, self) > 0)) out[self] = -Infinity;
  let largest = -Infinity;
  for (let i = 0; i < out.length; i++) {
    if (times && !(times[i] > 0)) out[i] = -Infinity;
    else if (out[i] > largest) largest = out[i];
  }
  return largest;
}

function fromLogits(out, times, self, shift) {
  if (shift === -Infinity) {
    out.fill(0);
    return 0;
  }
  exponentials(out, 0, out.length, shift);
  if (self >= 0 && times && out[self] > 0) out[self] *= withoutOne(times, self) / times[self];
  let total = 0;
  for (let i = 0; i < out.length; i++) {
    if (times) out[i] *= times[i];
    total += out[i];
  }
  return total;
}

/** What a ridge adds to the second moments of a state, per unit of weight. @param {number} shift of its weights */
export function penaltyOf(data, settings) {
  if (!settings.degree || !settings.ridge) return () => 0;
  const peak = KERNELS[settings.kernel].profile(0) ** (isByColumn(data, settings) ? data.numeric.length : 1);
  return (shift) => settings.ridge * peak * Math.exp(Math.min(-shift, LARGEST_EXPONENT));
}
