// Linear weights of the rows in a fit, which is the sum of weights times outputs. Those of a local constant are the
// kernel weights, those of a plane these times a linear function of the offset.

import { makePlane } from "./local_linear.js";
import { makeWeigher, penaltyOf } from "./similarity.js";

/**
 * Make shares(query, out), which writes the share of every row and returns whether any key is in reach.
 * @param settings of degree 0 or 1
 */
export function makeShares(data, settings) {
  const weigh = makeWeigher(data, settings), penalty = penaltyOf(data, settings), { n, numeric, periods } = data;
  const plane = settings.degree ? makePlane(numeric, [], weigh.bandwidth, periods) : null;
  const weight = new Float64Array(n), none = new Float64Array(0);
  return (query, out) => {
    const total = weigh(query, -1, weight);
    if (!(total > 0)) {
      out.fill(NaN);
      return false;
    }
    if (plane) {
      plane(query.numeric, weight, 0, n, total, penalty(weigh.shift), none, none);
      plane.shares(weight, 0, n, total, out);
    } else {
      for (let i = 0; i < n; i++) out[i] = weight[i] / total;
    }
    return true;
  };
}

/** The sum of products of shares over unit rows: zero is no share. */
export function innerProduct(one, other, weight) {
  let sum = 0;
  for (let i = 0; i < one.length; i++) if (one[i] !== 0) sum += (one[i] * other[i]) / (weight ? weight[i] : 1);
  return sum;
}
