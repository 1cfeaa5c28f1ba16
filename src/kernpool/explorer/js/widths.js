// Bandwidths at queries: those of the settings, or, in windows to the nearest keys, the distance to the k-th of them,
// as kernpool/pooling/widths.py has it. Coincident keys are counted, weights as so many keys, and one unit of a row that
// is left out is not.

import { KERNELS } from "./kernels.js";
import { lowerBound, orderOf, withoutOne } from "./order.js";

// A width is larger than the distance by LARGER, so that rounding does not decide whether a boxcar holds the k-th key;
// of k coincident keys it is next to nothing, SMALLEST of the least positive distance.
const SMALLEST = 2 ** -30, LARGER = 1 + 2 ** -43, ENOUGH = 1 - 1e-12;

/** Whether windows reach to the nearest keys. */
export function isNearest(settings) {
  return settings.widths === "nearest";
}

/** Whether windows can reach to the nearest keys here: of one column, no circle, all of whose rows the page has. */
export function canBeNearest(data, payload) {
  const isLine = data.numeric.length === 1 && !data.pairs[0] && !data.periods[0] && !data.categorical.length && !data.classes && !data.group;
  return isLine && data.n > 2 && Math.max(data.n, payload.rows ?? 0) <= payload.limits.exact;
}

/** How few keys determine the fit of a window, and how many there are. */
export function neighborRange(data, settings) {
  const { support, profile } = KERNELS[settings.kernel];
  const isZeroAtEdge = Number.isFinite(support) && profile(1 - 1e-9) < 1e-6;
  const least = (settings.degree ? 3 : 1) + Number(isZeroAtEdge);
  return [least, Math.max(least, Math.floor(unitsOf(data)))];
}

/** To how many keys windows reach: what is chosen, or what another kernel or degree needs. */
export function neighborsOf(data, settings) {
  return Math.max(neighborRange(data, settings)[0], settings.neighbors);
}

/** How many keys lie within a distance. */
export function keysWithin({ numeric, weight }, place, h) {
  return numeric[0].reduce((sum, key, i) => (Math.abs(key - place) <= h ? sum + (weight ? weight[i] : 1) : sum), 0);
}

function unitsOf({ weight, n }) {
  return weight ? weight.reduce((sum, one) => sum + one, 0) : n;
}

/**
 * Make at(q, self), the bandwidths at a query of the first column, from which one of the row `self` is left out; they are
 * in one array, at.now, which the next call writes over.
 */
export function makeBandwidth(data, settings) {
  const now = Float64Array.from(settings.bandwidth), at = () => now;
  if (!isNearest(settings)) return Object.assign(at, { now });
  const { keys: [keys], times, ranks } = orderOf(data, 0), k = neighborsOf(data, settings), { factor = 1 } = settings;
  const nearest = (q, self) => {
    now[0] = factor * widthAt(keys, times, k, q, self < 0 ? -1 : ranks[self]);
    return now;
  };
  return Object.assign(nearest, { now });
}

/** The distance within which ascending keys have the weight k; beyond all of them it grows as if they went on. */
function widthAt(keys, times, k, q, own) {
  const start = lowerBound(keys, q), n = keys.length;
  let left = start - 1, right = start, units = 0, far = 0;
  while ((units < ENOUGH * k || far === 0) && (left >= 0 || right < n)) {
    const isRight = left < 0 || (right < n && keys[right] - q < q - keys[left]), i = isRight ? right++ : left--;
    const unit = i === own ? withoutOne(times, i) : times ? times[i] : 1;
    if (!(unit > 0)) continue;
    far = Math.abs(keys[i] - q);
    if (units >= ENOUGH * k) far *= SMALLEST; // the first one that is not where the others are
    units += unit;
  }
  if (far === 0) return 1;
  return LARGER * far * (units < ENOUGH * k ? k / units : 1);
}
