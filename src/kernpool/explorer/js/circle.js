// Columns that come round after a period, as points of a circle: kernpool/data/circular.py has the same.

/** How far a key is from a query along the chord, signed: what kernels take. A column without a period is a line. */
export function chord(gap, period) {
  return period ? (period / Math.PI) * Math.sin((Math.PI * turned(gap, period)) / period) : gap;
}

/** And along the tangent of the query, which is what planes take. */
export function alongTangent(gap, period) {
  return period ? (period / (2 * Math.PI)) * Math.sin((2 * Math.PI * turned(gap, period)) / period) : gap;
}

/** The shorter way round, so that sines keep their digits. */
function turned(gap, period) {
  return gap - period * Math.round(gap / period);
}
