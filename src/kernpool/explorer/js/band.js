// Confidence intervals of a curve, pointwise and as a simultaneous band, as `confidence_interval` has them.
//
// center +- t sigma(q) |l(q)| with the noise sigma^2 around the place, a mean of squared leave-one-out residuals with
// twice the bandwidth, and the norm of the shares l; t is Student's quantile at as many degrees of freedom as residuals
// count in that mean. The center is the fit ("naive"), or 2 m_h - m_(sqrt(2) h) of local lines ("robust"), which takes
// the bias of second order off. Along one column the band has the critical value of the tube formula (Sun and Loader,
// Annals of Statistics 22, 1994): its error runs along a path whose length is a sum of angles between shares.

import { KERNELS } from "./kernels.js";
import { innerProduct, makeShares } from "./linear_weights.js";
import { normalTail, studentQuantile } from "./student_t.js";
import { isNearest } from "./widths.js";

const NOISE_WINDOW = 2, WIDER = Math.SQRT2, PER_BANDWIDTH = 8, FEWEST = 401, MOST = 4001, FEWEST_ROWS = 5;
const EPSILON = 2 ** -52;

/**
 * Intervals along a numeric column, some places at a time: yields after each, to be stopped, and returns
 * {center, lower, upper, standardError, of output j and place i at j * m + i, df: per place, critical: of a band, or
 * null, reason: why there is none, or null}. All is NaN where no key is in reach or less than one residual counts.
 * @param pool from makePool @param {Float64Array} residual leave-one-out, output by output
 * @param {{level?: number, method?: "robust" | "naive", simultaneous?: boolean}} options
 */
export function* bandAlong(pool, residual, column, places, query, options = {}) {
  const { level = 0.95, method = "robust", simultaneous = false } = options, { data, settings } = pool;
  const m = places.length, c = data.outputs.length, along = queriesAlong(column, query);
  const estimate = makeEstimate(data, settings, method), noise = makeNoise(data, settings, residual);
  const [center, lower, upper, standardError] = Array.from({ length: 4 }, () => nans(c * m)), dfs = nans(m);
  let critical = null, reason = simultaneous ? whyNoBand(pool, places) : null;
  if (rowsOf(data) < FEWEST_ROWS) reason = "rows";
  if (simultaneous && !reason) {
    const [length, pieces] = yield* pathLength(data, settings, estimate, places, along);
    critical = criticalValue(length, pieces, level);
  }
  const tail = critical === null ? 0.5 * (1 - level) : normalTail(critical);
  for (let i = 0; i < m && reason !== "rows"; i++) {
    const at = along(places[i]), { center: fit, size } = estimate(at), { variance, df } = noise(at);
    const t = df >= 1 - 1e-12 ? studentQuantile(tail, Math.max(df, 1)) : NaN;
    dfs[i] = Number.isNaN(t) ? NaN : Math.max(df, 1);
    for (let j = 0; j < c; j++) {
      const error = Number.isNaN(t) ? NaN : Math.sqrt(variance[j]) * size, k = j * m + i;
      center[k] = fit[j];
      standardError[k] = error;
      lower[k] = fit[j] - t * error;
      upper[k] = fit[j] + t * error;
    }
    yield i;
  }
  return { center, lower, upper, standardError, df: dfs, critical, reason };
}

const nans = (size) => new Float64Array(size).fill(NaN);

function queriesAlong(column, query) {
  return (place) => ({ numeric: Array.from(query.numeric, (q, a) => (a === column ? place : q)), codes: query.codes });
}

function rowsOf(data) {
  return data.weight ? data.weight.reduce((sum, one) => sum + one, 0) : data.n;
}

/** Bandwidths times a factor; smoothings with its square, where levels follow, up to the ends of their boxes. */
function widened(data, settings, factor, withLevels) {
  const smoothing = settings.smoothing.map((one, b) => Math.min(one * factor ** 2, data.categorical[b].largest));
  const bandwidth = Array.from(settings.bandwidth, (h) => h * factor);
  const scaled = { ...settings, bandwidth, factor: (settings.factor ?? 1) * factor };
  return { ...scaled, smoothing: withLevels ? smoothing : settings.smoothing };
}

/** Make estimate(query) -> {center per output, size: the norm of its shares, shares}. */
function makeEstimate(data, settings, method) {
  const plain = method === "robust" ? { ...settings, degree: 1 } : settings;
  const narrow = makeShares(data, plain), wide = makeShares(data, widened(data, plain, WIDER, true));
  const shares = new Float64Array(data.n), others = new Float64Array(data.n);
  return (query) => {
    let isKnown = narrow(query, shares);
    if (method === "robust") {
      isKnown = wide(query, others) && isKnown;
      for (let i = 0; i < data.n; i++) shares[i] = 2 * shares[i] - others[i];
    }
    const center = data.centered.map((values, j) => (isKnown ? data.center[j] + sumOf(shares, values) : NaN));
    return { center, shares, size: isKnown ? Math.sqrt(innerProduct(shares, shares, data.weight)) : NaN };
  };
}

function sumOf(shares, values) {
  let sum = 0;
  for (let i = 0; i < shares.length; i++) sum += shares[i] * values[i];
  return sum;
}

/** Make noise(query) -> {variance per output, df}. */
function makeNoise(data, settings, residual) {
  const { n } = data, shares = makeShares(data, { ...widened(data, settings, NOISE_WINDOW, false), degree: 0 });
  const squared = data.outputs.map((_, j) => residual.subarray(j * n, (j + 1) * n).map((one) => one * one));
  const rounding = data.outputs.map((values) => nothing(values, data.weight)), share = new Float64Array(n);
  return (query) => {
    if (!shares(query, share)) return { variance: rounding.map(() => NaN), df: NaN };
    const variance = squared.map((values, j) => quietOr(sumOf(share, values), rounding[j] ** 2));
    return { variance, df: 1 / innerProduct(share, share, data.weight) };
  };
}

/** Zero for what is nothing but rounding. */
function quietOr(variance, rounding) {
  return variance <= rounding ? 0 : variance;
}

/** Up to which size residuals are rounding. */
function nothing(values, weight) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    if (weight && !(weight[i] > 0)) continue;
    low = Math.min(low, values[i]);
    high = Math.max(high, values[i]);
  }
  return 1e-12 * (high - low) + 4 * EPSILON * Math.max(Math.abs(low), Math.abs(high));
}

/** "columns", "circle", "widths", "edge", "rows" or "long": why the tube formula does not hold; null if it does. */
function whyNoBand({ data, settings }, places) {
  const kernel = KERNELS[settings.kernel], extent = Math.max(...places) - Math.min(...places);
  if (data.numeric.length !== 1) return "columns";
  if (data.periods[0]) return "circle"; // the estimators take it as two columns
  if (isNearest(settings)) return "widths"; // shares jump with the k-th key
  const inside = kernel.support * (1 - EPSILON / 2);
  if (Number.isFinite(kernel.support) && kernel.profile(inside) > 1e-6 * kernel.profile(0)) return "edge";
  return (PER_BANDWIDTH * extent) / settings.bandwidth[0] < MOST ? null : "long";
}

/** The length of the path of normalised shares between the ends of the places, and of how many pieces it is. */
function* pathLength(data, settings, estimate, places, along) {
  const low = Math.min(...places), high = Math.max(...places);
  const fine = Math.ceil((PER_BANDWIDTH * (high - low)) / settings.bandwidth[0]);
  const steps = high > low ? Math.max(fine, FEWEST - 1) : 0;
  let length = 0, pieces = 0, last = null;
  for (let i = 0; i <= steps; i++) {
    const { shares, size } = estimate(along(i === steps ? high : low + ((high - low) * i) / steps));
    const unit = size > 0 ? shares.map((one) => one / size) : null;
    if (unit && last) {
      const step = unit.map((one, k) => one - last[k]);
      length += 2 * Math.asin(Math.min(1, 0.5 * Math.sqrt(innerProduct(step, step, data.weight))));
    } else if (unit) {
      pieces += 1;
    }
    last = unit;
    yield i;
  }
  return [length, Math.max(pieces, 1)];
}

/** How many standard errors a band is wide on either side. */
export function criticalValue(length, pieces, level) {
  const excess = (c) => (length / Math.PI) * Math.exp(-0.5 * c * c) + 2 * pieces * normalTail(c) - (1 - level);
  let low = 0, high = 40;
  while (high - low > 1e-15 * high) {
    const middle = 0.5 * (low + high);
    if (middle === low || middle === high) break;
    if (excess(middle) > 0) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}
