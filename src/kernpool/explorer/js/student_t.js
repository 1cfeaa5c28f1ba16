// Tails and quantiles of the normal distribution and of Student's, to about thirteen digits.

const TERMS = 300;

/** The probability of more than c of a standard normal number, c >= 0. */
export function normalTail(c) {
  const density = Math.exp(-0.5 * c * c) / Math.sqrt(2 * Math.PI);
  if (c < 2.5) {
    let term = c, sum = c;
    for (let k = 1; k < TERMS && term > 1e-18 * sum; k++) {
      term *= (c * c) / (2 * k + 1);
      sum += term;
    }
    return 0.5 - density * sum;
  }
  let fraction = c;
  for (let k = TERMS; k > 0; k--) fraction = c + k / fraction;
  return density / fraction;
}

/** The probability of more than t of Student's distribution, t >= 0. */
export function studentTail(t, df) {
  const x = df / (df + t * t);
  return 0.5 * betaShare(x, 1 - x, 0.5 * df);
}

/** The number that Student's distribution exceeds with a probability of at most 1/2. */
export function studentQuantile(tail, df) {
  if (!(df > 0) || !(tail > 0) || Number.isNaN(tail)) return tail === 0 ? Infinity : NaN;
  let low = 0, high = 1;
  while (studentTail(high, df) > tail && high < 1e300) high *= 2;
  let t = 0.5 * (low + high);
  for (let step = 0; step < 200; step++) {
    const excess = studentTail(t, df) - tail;
    if (excess > 0) low = t;
    else high = t;
    const next = t + excess / studentDensity(t, df);
    const moved = next > low && next < high ? next : 0.5 * (low + high);
    if (Math.abs(moved - t) <= 1e-15 * moved) return moved;
    t = moved;
  }
  return t;
}

function studentDensity(t, df) {
  return Math.exp(-logHalfBeta(0.5 * df) - 0.5 * Math.log(df) - 0.5 * (df + 1) * Math.log1p((t * t) / df));
}

/** The regularised incomplete beta function of x with parameters a and 1/2; y is 1 - x. */
function betaShare(x, y, a) {
  const front = Math.exp(a * Math.log(x) + 0.5 * Math.log(y) - logHalfBeta(a));
  if (x <= 0 || y <= 0) return x <= 0 ? 0 : 1;
  return x < (a + 1) / (a + 2.5) ? (front * betaFraction(x, a, 0.5)) / a : 1 - (front * betaFraction(y, 0.5, a)) / 0.5;
}

/** The continued fraction of the incomplete beta function, by Lentz's method. */
function betaFraction(x, a, b) {
  let c = 1, d = 1 / nonZero(1 - ((a + b) * x) / (a + 1)), product = d;
  for (let m = 1; m < 10 * TERMS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonZero(1 + even * d);
    c = nonZero(1 + even / c);
    product *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonZero(1 + odd * d);
    c = nonZero(1 + odd / c);
    product *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return product;
}

function nonZero(x) {
  return Math.abs(x) < 1e-300 ? 1e-300 : x;
}

/** log B(a, 1/2) = log gamma(a) + log gamma(1/2) - log gamma(a + 1/2), without their difference of large numbers. */
function logHalfBeta(a) {
  let shift = 0, b = a;
  for (; b < 30; b++) shift += Math.log1p(0.5 / b);
  const inverse = 1 / b, square = inverse * inverse;
  const series = 1 / 8 - square * (1 / 192 - square * (1 / 640 - square * (17 / 14336)));
  return 0.5 * Math.log(Math.PI) + shift - 0.5 * Math.log(b) + inverse * series;
}
