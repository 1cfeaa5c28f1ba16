// The payload of the page as arrays: columns, targets, weights, and the order of the keys along every column.
import { extent } from "./chart.js";
import { digitsOf } from "./words.js";

/** Decode base64 of little-endian numbers, {f64: text} or {i32: text}. @returns {Float64Array | Int32Array} */
export function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.f64 ?? packed.i32), (letter) => letter.charCodeAt(0));
  return packed.f64 !== undefined ? new Float64Array(bytes.buffer) : new Int32Array(bytes.buffer);
}

/** Encode numbers as the payload does. @param {Float64Array | Int32Array} numbers */
export function pack(numbers) {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return numbers instanceof Int32Array ? { i32: btoa(text) } : { f64: btoa(text) };
}

/**
 * Read a payload.
 *
 * numeric: Float64Array(n) of each numeric column; names, and placeOf: which column of the payload each is.
 * pairs: of each numeric column null, or the two levels of which 0 and 1 stand.
 * times: of each numeric column null, or the kind of dates or durations that it holds in days.
 * periods: of each numeric column null, or after which it comes round; comesRound: whether one does.
 * categorical: {name, place, levels, codes, kernel, largest, distances: Float64Array(levels * levels)} of each other
 *   one; ordered levels have places, and are as far apart as those.
 * outputs: Float64Array(n) of each output, of classes one per class that is 0 or 1; classes: names, or null.
 * center and centered: a number per output, and the outputs less it, which is what sums are formed of.
 * weight: Float64Array(n) or null. group: Int32Array(n) or null; rows of one group are left out together.
 * sorted: Int32Array(n) per numeric column, the keys in ascending order; low, high: the ends of each; digits,
 * outputDigits: how many are shown of the values of each column, and of y.
 */
export function readData(payload) {
  const numeric = [], names = [], placeOf = [], pairs = [], times = [], periods = [], categorical = [];
  payload.columns.forEach((column, place) => {
    if (column.kind === "numeric") {
      numeric.push(Float64Array.from(unpack(column.values)));
      names.push(column.name);
      placeOf.push(place);
      pairs.push(column.levels ?? null);
      times.push(column.time ?? null);
      periods.push(column.period ?? null);
    } else {
      categorical.push(readCategorical(column, place));
    }
  });
  const classes = payload.target.classes ?? null;
  const outputs = classes ? readClasses(payload.target) : [Float64Array.from(unpack(payload.target.values))];
  const truth = payload.truth ? { x: unpack(payload.truth.x), y: unpack(payload.truth.y) } : null;
  return makeData({
    numeric, names, placeOf, pairs, times, periods, categorical, outputs, classes, truth,
    comesRound: periods.some(Boolean),
    group: payload.group ? Int32Array.from(unpack(payload.group)) : null,
    weight: payload.weight ? Float64Array.from(unpack(payload.weight)) : null,
    targetName: payload.target.name,
  });
}

/** Numeric columns that a curve runs along: not those of two levels, unless there are no others. */
export function axesOf({ pairs }) {
  const axes = pairs.map((_, a) => a);
  return pairs.every(Boolean) ? axes : axes.filter((a) => !pairs[a]);
}

/** Replace the rows by those of a sample along the first numeric column. @param data @param {{x, y, truth}} sample */
export function withSample(data, sample) {
  return makeData({
    ...data,
    numeric: [Float64Array.from(unpack(sample.x))],
    outputs: [Float64Array.from(unpack(sample.y))],
    truth: sample.truth ? { x: unpack(sample.truth.x), y: unpack(sample.truth.y) } : null,
    weight: null, group: null,
  });
}

/**
 * Replace the rows by others along the first numeric column, whose ends stay: axes must not move under a point that is
 * dragged. `start` are the rows that were replaced.
 */
export function withRows(data, { x, y }) {
  const { low, high } = data;
  const rows = makeData({ ...data, start: data, numeric: [Float64Array.from(x)], outputs: [Float64Array.from(y)] });
  return Object.freeze({ ...rows, low, high });
}

function makeData(parts) {
  const n = parts.outputs[0].length;
  const center = parts.outputs.map(middle);
  const sorted = parts.numeric.map(sortedOrder);
  const low = parts.numeric.map((values, a) => values[sorted[a][0]]);
  const high = parts.numeric.map((values, a) => values[sorted[a][n - 1]]);
  const digits = low.map((one, a) => digitsOf(one, high[a]));
  return Object.freeze({
    ...parts, n, center, sorted, low, high, digits,
    outputDigits: parts.classes ? 4 : digitsOf(...extent(parts.outputs)),
    centered: parts.outputs.map((values, j) => values.map((value) => value - center[j])),
  });
}

function readCategorical(column, place) {
  const count = column.levels.length;
  const distances = new Float64Array(count * count);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) {
      distances[i * count + j] = column.places ? Math.abs(column.places[i] - column.places[j]) : Number(i !== j);
    }
  }
  const { name, levels, kernel, largest } = column;
  return { name, place, levels, kernel, largest, distances, codes: Int32Array.from(unpack(column.codes)) };
}

function readClasses(target) {
  const codes = unpack(target.codes);
  return target.classes.map((_, c) => Float64Array.from(codes, (code) => Number(code === c)));
}

/** Halfway between the ends: of values that are all equal exactly this value. */
function middle(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return 0.5 * low + 0.5 * high;
}

/** Rows in ascending order of their values, equal ones in the order of the rows. */
function sortedOrder(values) {
  return Int32Array.from(values, (_, i) => i).sort((i, j) => values[i] - values[j] || i - j);
}
