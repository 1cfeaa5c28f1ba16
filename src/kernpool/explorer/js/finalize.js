// From sums to estimates: centers added back, empty windows filled, class priors mixed in.

import { chord } from "./circle.js";
import { withoutOne } from "./order.js";

/**
 * Make finalize(query, self, isEmpty, value), which finishes the fit of a query, less the centers, in place.
 *
 * settings.empty says what an empty window becomes: "nan", "zero", "nearest" (the nearest keys of the numeric
 * columns) or "mean" of all keys; where a row is left out, NaN. settings.priorShare is the share of the class priors,
 * where no row is left out.
 */
export function makeFinalize(data, settings) {
  const share = data.classes ? (settings.priorShare ?? 0) : 0, prior = share ? means(data, -1) : null;
  return (query, self, isEmpty, value) => {
    if (isEmpty) fillEmpty(data, settings, query, self, value);
    else for (let j = 0; j < value.length; j++) value[j] += data.center[j];
    if (!data.classes) return;
    let sum = 0;
    for (let j = 0; j < value.length; j++) {
      if (!settings.degree) value[j] = Math.min(Math.max(value[j], 0), 1);
      sum += value[j];
    }
    if (!share || self >= 0) return;
    for (let j = 0; j < value.length; j++) value[j] = (1 - share) * value[j] + share * sum * prior[j];
  };
}

function fillEmpty(data, settings, query, self, value) {
  if (self >= 0) value.fill(NaN);
  else if (settings.empty === "zero") value.fill(0);
  else if (settings.empty === "mean") value.set(means(data, self));
  else if (settings.empty === "nearest") nearestMean(data, settings, query, self, value);
  else value.fill(NaN);
}

/** The weighted mean of every output, one of the row `self` left out, or its group. */
export function means(data, self) {
  let total = 0;
  const sums = new Float64Array(data.centered.length);
  for (let i = 0; i < data.n; i++) {
    const times = timesOf(data, i, self);
    total += times;
    for (let j = 0; j < sums.length; j++) sums[j] += times * data.centered[j][i];
  }
  return sums.map((sum, j) => data.center[j] + sum / total);
}

function timesOf(data, i, self) {
  if (self >= 0 && data.group) return data.group[i] === data.group[self] ? 0 : data.weight ? data.weight[i] : 1;
  return i === self ? withoutOne(data.weight, i) : data.weight ? data.weight[i] : 1;
}

function squareOf(data, settings, query, i) {
  let square = 0;
  for (let a = 0; a < data.numeric.length; a++) {
    square += (chord(query.numeric[a], data.numeric[a][i], data.periods[a]) / settings.bandwidth[a]) ** 2;
  }
  return square;
}

/** The key at the least distance in bandwidths, of those that take part; -1 for none. */
export function nearestKey(data, settings, query, self = -1) {
  let nearest = -1, least = Infinity;
  for (let i = 0; i < data.n; i++) {
    const square = squareOf(data, settings, query, i);
    if (square < least && timesOf(data, i, self) > 0) {
      least = square;
      nearest = i;
    }
  }
  return nearest;
}

function nearestMean(data, settings, query, self, value) {
  const nearest = nearestKey(data, settings, query, self);
  if (nearest < 0) {
    value.fill(NaN);
    return;
  }
  const least = squareOf(data, settings, query, nearest);
  let total = 0;
  value.fill(0);
  for (let i = 0; i < data.n; i++) {
    const times = timesOf(data, i, self);
    if (!(times > 0) || squareOf(data, settings, query, i) !== least) continue;
    total += times;
    for (let j = 0; j < value.length; j++) value[j] += times * data.centered[j][i];
  }
  for (let j = 0; j < value.length; j++) value[j] = data.center[j] + value[j] / total;
}
