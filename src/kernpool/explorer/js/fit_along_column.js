// Slices: fits along one numeric column, with the other columns held, over keys in the order of that column.
//
// What the held columns say of a key is worked out once per slice. Keys that no place of the slice reaches are left
// out, and along a single column the keys that count for a place are a window of the order.

import { chord } from "./circle.js";
import { exponentials } from "./exponential.js";
import { KERNELS } from "./kernels.js";
import { makeFinalize } from "./finalize.js";
import { makePlane, weightedMean } from "./local_linear.js";
import { inOrder, lowerBound, orderOf, withoutOne } from "./order.js";
import { addSquares, addTo, distances, factorsOf, factorTable, multiplyOnto } from "./similarity.js";
import { isByColumn, isInLogs, penaltyOf } from "./similarity.js";
import { makeBandwidth } from "./widths.js";

// How far below the logit of the nearest key a logit may be and count: exp(-40) is 4e-18. A plane may rest on the
// lightest keys, so that for degree 1 all count that do not underflow.
const LOWEST = [40, 750];

/**
 * Make a slice through `query` along a numeric column.
 *
 * Its fit(place, self, value, slope) writes the fit into `value`, and for degree 1 the slope into `slope`, as `at` of a
 * pool gives it; self is a row of which one is left out, or -1. It returns the sum of weights, zero where no key is in
 * reach.
 */
export function makeSlice(data, settings, column, query) {
  const kernel = KERNELS[settings.kernel], held = heldColumns(data, settings, column, query);
  const isPlain = !held.rest && !held.extra, { rows, ranks, keys, outputs, times } = isPlain
    ? orderOf(data, column)
    : inOrder(data, data.sorted[column].filter((i) => takesPart(data, kernel, held, i)));
  const pick = (values) => (values ? Float64Array.from(rows, (i) => values[i]) : null);
  const rest = pick(held.rest), extra = pick(held.extra), along = keys[column], bandwidthAt = makeBandwidth(data, settings);
  const weight = new Float64Array(rows.length), range = new Int32Array(2);
  const plane = settings.degree ? makePlane(keys, outputs, bandwidthAt.now, data.periods) : null;
  const penalty = penaltyOf(data, settings), finalize = makeFinalize(data, settings), shift = new Float64Array(1);
  const period = data.periods[column];
  const findRange = period ? allKeys : Number.isFinite(kernel.support) ? rangeOfSupport : isPlain ? rangeOfLogits : allKeys;
  const largest = times ? times.reduce((most, one) => Math.max(most, one), 0) : 1;
  const place = Array.from(query.numeric), unused = new Float64Array(keys.length * outputs.length);
  return (q, self, value, slope = unused) => {
    const own = self < 0 ? -1 : ranks[self], h = bandwidthAt(q, self)[column];
    findRange(along, q, h, kernel, LOWEST[settings.degree], times, largest, own, range);
    const from = range[0], to = range[1];
    fillDistances(along, rest, q, h, weight, from, to, period);
    const total = weighRange(kernel, held.inLogs, extra, times, own, weight, from, to, shift), isEmpty = !(total > 0);
    place[column] = q;
    if (isEmpty) slope.fill(NaN);
    else if (plane) plane(place, weight, from, to, total, penalty(shift[0]), value, slope);
    else for (let j = 0; j < value.length; j++) value[j] = weightedMean(outputs[j], weight, from, to, total);
    finalize({ numeric: place, codes: query.codes }, self, isEmpty, value);
    return total;
  };
}

/** What the other columns say of every key: squared distances, and similarities to multiply on (or logits to add). */
function heldColumns(data, settings, column, query) {
  const { n, numeric, categorical } = data, kernel = KERNELS[settings.kernel];
  const tables = categorical.map((one, b) => factorTable(one, settings.smoothing[b]));
  const inLogs = isInLogs(data, settings, tables), byColumn = isByColumn(data, settings);
  const combine = inLogs ? addTo : multiplyOnto, similarities = inLogs ? kernel.logProfiles : kernel.profiles;
  const rest = numeric.length > 1 && !byColumn ? new Float64Array(n) : null;
  const extra = byColumn || categorical.length ? new Float64Array(n).fill(inLogs ? 0 : 1) : null;
  numeric.forEach((key, a) => {
    if (a === column) return;
    if (rest) {
      addSquares(key, query.numeric[a], settings.bandwidth[a], rest, data.periods[a]);
    } else {
      const one = new Float64Array(n);
      distances(key, query.numeric[a], settings.bandwidth[a], one, data.periods[a]);
      similarities(one, 0, n);
      combine(extra, one);
    }
  });
  categorical.forEach((one, b) => {
    combine(extra, factorsOf(one, inLogs ? tables[b].map(Math.log) : tables[b], query.codes[b]));
  });
  return { rest, extra, inLogs };
}

function takesPart(data, kernel, { rest, extra, inLogs }, i) {
  const isNear = !rest || rest[i] <= 1.000001 * kernel.support ** 2;
  return isNear && !(data.weight && !(data.weight[i] > 0)) && !(extra && extra[i] === (inLogs ? -Infinity : 0));
}

function allKeys(keys, q, h, kernel, lowest, times, largest, own, range) {
  range[0] = 0;
  range[1] = keys.length;
}

/** The keys within the support, and a little more: profiles decide at the edge. */
function rangeOfSupport(keys, q, h, kernel, lowest, times, largest, own, range) {
  const reach = 1.000001 * kernel.support * h + 1e-9 * Math.abs(q);
  range[0] = lowerBound(keys, q - reach);
  range[1] = lowerBound(keys, q + reach);
}

/** The keys whose weight is not next to nothing beside that of the nearest one. */
function rangeOfLogits(keys, q, h, kernel, lowest, times, largest, own, range) {
  const n = keys.length, isLeftOut = own >= 0 && !(withoutOne(times, own) > 0), start = lowerBound(keys, q);
  let left = start - 1, right = start;
  if (isLeftOut && left === own) left -= 1;
  if (isLeftOut && right === own) right += 1;
  const isRight = left < 0 || (right < n && keys[right] - q < q - keys[left]);
  const nearest = isRight ? right : left;
  if (!(nearest < n) || nearest < 0 || Number.isNaN(q)) {
    range.fill(0);
    return;
  }
  const logit = (i) => kernel.logProfile(Math.abs((q - keys[i]) / h));
  const floor = logit(nearest) - lowest - (times ? Math.log(largest / times[nearest]) : 0);
  range[0] = firstWhere(0, start, (i) => logit(i) >= floor);
  range[1] = firstWhere(start, n, (i) => !(logit(i) >= floor));
}

/** The first place from which on something holds. */
function firstWhere(low, high, holds) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function fillDistances(along, rest, q, h, out, from, to, period) {
  if (!rest) {
    for (let i = from; i < to; i++) out[i] = Math.abs(chord(q, along[i], period) / h);
    return;
  }
  for (let i = from; i < to; i++) {
    const u = chord(q, along[i], period) / h;
    out[i] = Math.sqrt(rest[i] + u * u);
  }
}

/** Turn distances into weights, in units of exp(shift[0]), and return their sum. */
function weighRange(kernel, inLogs, extra, times, own, out, from, to, shift) {
  (inLogs ? kernel.logProfiles : kernel.profiles)(out, from, to);
  const left = own >= 0 ? withoutOne(times, own) : 0, isInside = own >= from && own < to;
  if (extra && inLogs) for (let i = from; i < to; i++) out[i] += extra[i];
  if (extra && !inLogs) for (let i = from; i < to; i++) out[i] *= extra[i];
  if (isInside && !(left > 0)) out[own] = inLogs ? -Infinity : 0;
  if (inLogs) {
    let largest = -Infinity;
    for (let i = from; i < to; i++) if (out[i] > largest) largest = out[i];
    if (largest === -Infinity) return 0;
    exponentials(out, from, to, largest);
    shift[0] = largest;
  }
  if (isInside && left > 0) out[own] *= left / times[own];
  let total = 0;
  if (times) for (let i = from; i < to; i++) out[i] *= times[i];
  for (let i = from; i < to; i++) total += out[i];
  return total;
}
