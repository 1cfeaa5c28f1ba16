// Rows in the order of a column.

/** Keys, outputs and frequencies of some rows, in their order, and where each row is among them, -1 for nowhere. */
export function inOrder(data, rows) {
  const pick = (values) => (values ? Float64Array.from(rows, (i) => values[i]) : null);
  const ranks = new Int32Array(data.n).fill(-1);
  rows.forEach((row, place) => (ranks[row] = place));
  return { rows, ranks, keys: data.numeric.map(pick), outputs: data.centered.map(pick), times: pick(data.weight) };
}

const ORDERS = new WeakMap();

/** The rows of some data that have a weight, along a column: the same for all settings. */
export function orderOf(data, column) {
  const known = ORDERS.get(data) ?? [];
  ORDERS.set(data, known);
  known[column] ??= inOrder(data, data.sorted[column].filter((i) => !data.weight || data.weight[i] > 0));
  return known[column];
}

/** The first place in ascending keys that is not below a number. */
export function lowerBound(keys, number) {
  let low = 0, high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What is left of the weight of a row once one of it is taken away. */
export function withoutOne(times, self) {
  return times ? Math.max(times[self] - 1, 0) : 0;
}
