// Columns that come round after a period, as points of a circle: kernpool/data/column_options.py has the same.

/** How far a query is from a key along the chord, signed: what kernels take. A column without a period is a line. */
export function chord(query, key, period) {
  return period ? (period / Math.PI) * Math.sin((Math.PI * turn(query, key, period)) / period) : query - key;
}

/** And along the tangent of the query, which is what planes take. */
export function alongTangent(query, key, period) {
  return period ? (period / (2 * Math.PI)) * Math.sin((2 * Math.PI * turn(query, key, period)) / period) : query - key;
}

/** The shorter way round. Equal places have equal bits, however often they have gone round. */
function turn(query, key, period) {
  const gap = place(query, period) - place(key, period);
  return gap - period * Math.round(gap / period);
}

function place(number, period) {
  return ((number % period) + period) % period;
}
