// Designs of local linear fits: the weighted covariance of the offsets of keys, each column in units of its root mean
// square, and the decision about its rank, which is that of kernpool/core/local_fit.py.

/** Eigenvalues below do not determine a slope: half of the digits. */
export const RANK_TOLERANCE = 2 ** -26;

/**
 * Invert a design of d columns, given row by row; eigenvalues below the tolerance are bounded.
 * @param {Float64Array} design @param {number} d @param {Float64Array} inverse receives it @returns {number} the rank
 */
export function invertDesign(design, d, inverse) {
  if (d === 1) {
    inverse[0] = boundedInverse(design[0]);
    return Number(design[0] > RANK_TOLERANCE);
  }
  if (eliminate(design, d, inverse)) return d;
  const { values, vectors } = eigen(design, d);
  let rank = 0;
  inverse.fill(0);
  for (let k = 0; k < d; k++) {
    const bounded = boundedInverse(values[k]);
    if (values[k] > RANK_TOLERANCE) rank += 1;
    for (let a = 0; a < d; a++) {
      for (let b = 0; b < d; b++) inverse[a * d + b] += vectors[a * d + k] * bounded * vectors[b * d + k];
    }
  }
  return rank;
}

/** 1 / eigenvalue, and below the tolerance something that shrinks to zero with it. */
export function boundedInverse(value) {
  const shrunk = Math.min(Math.max(value, 0), RANK_TOLERANCE) / RANK_TOLERANCE;
  return shrunk / Math.max(value, RANK_TOLERANCE);
}

/** Gauss-Jordan; true if the inverse shows that no eigenvalue is small. */
function eliminate(design, d, inverse) {
  inverse.set(design.subarray(0, d * d));
  for (let k = 0; k < d; k++) {
    const pivot = inverse[k * d + k];
    for (let i = 0; i < d; i++) {
      if (i === k) continue;
      const factor = inverse[i * d + k] / pivot;
      for (let j = 0; j < d; j++) if (j !== k) inverse[i * d + j] -= factor * inverse[k * d + j];
      inverse[i * d + k] = -factor;
    }
    for (let j = 0; j < d; j++) if (j !== k) inverse[k * d + j] /= pivot;
    inverse[k * d + k] = 1 / pivot;
  }
  let square = 0;
  for (let k = 0; k < d * d; k++) square += inverse[k] * inverse[k];
  return square < (0.5 / RANK_TOLERANCE) ** 2;
}

/** Eigenvalues and vectors of a small symmetric matrix, by Jacobi's rotations. */
function eigen(design, d) {
  const matrix = Float64Array.from(design.subarray(0, d * d)), vectors = new Float64Array(d * d);
  for (let k = 0; k < d; k++) vectors[k * d + k] = 1;
  for (let sweep = 0; sweep < 30; sweep++) {
    let off = 0;
    for (let p = 0; p < d; p++) {
      for (let q = p + 1; q < d; q++) {
        off += matrix[p * d + q] ** 2;
        rotate(matrix, vectors, d, p, q);
      }
    }
    if (off < 1e-40) break;
  }
  return { values: Float64Array.from({ length: d }, (_, k) => matrix[k * d + k]), vectors };
}

function rotate(matrix, vectors, d, p, q) {
  const entry = matrix[p * d + q];
  if (entry === 0) return;
  const half = (matrix[q * d + q] - matrix[p * d + p]) / (2 * entry);
  const tangent = (half < 0 ? -1 : 1) / (Math.abs(half) + Math.sqrt(half * half + 1));
  const cosine = 1 / Math.sqrt(tangent * tangent + 1), sine = tangent * cosine;
  for (let k = 0; k < d; k++) {
    const x = matrix[k * d + p], y = matrix[k * d + q];
    matrix[k * d + p] = cosine * x - sine * y;
    matrix[k * d + q] = sine * x + cosine * y;
  }
  for (let k = 0; k < d; k++) {
    const x = matrix[p * d + k], y = matrix[q * d + k];
    matrix[p * d + k] = cosine * x - sine * y;
    matrix[q * d + k] = sine * x + cosine * y;
    const v = vectors[k * d + p], w = vectors[k * d + q];
    vectors[k * d + p] = cosine * v - sine * w;
    vectors[k * d + q] = sine * v + cosine * w;
  }
}
