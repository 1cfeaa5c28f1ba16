/** Gradient descent on w = 1/h for the leave-one-out loss of local constant fits with the Gaussian kernel. */

/**
 * Descend: first the loss where it starts, then after every epoch.
 * @param {{width: number, rate: number, epochs: number, loss: "mean" | "sum"}} options
 * @returns {Generator<{epoch: number, width: number, loss: number}>}
 */
export function* descend(data, { width, rate, epochs, loss }) {
  const scale = loss === "sum" ? data.n : 1;
  let w = width;
  for (let epoch = 0; ; epoch++) {
    const { error, slope } = lossAndSlope(data.numeric[0], data.centered[0], w);
    yield { epoch, width: w, loss: scale * error };
    if (epoch >= epochs) return;
    w -= rate * scale * slope;
  }
}

/**
 * The mean squared error of rows that the others predict, and its derivative with respect to w. With the weights a_j of
 * the others, the prediction's derivative is the sum of -w (x_i - x_j)^2 a_j (y_j - prediction).
 */
export function lossAndSlope(x, y, w) {
  const n = x.length;
  const weight = new Float64Array(n);
  let error = 0;
  let slope = 0;
  for (let i = 0; i < n; i++) {
    let nearest = Infinity;
    for (let j = 0; j < n; j++) if (j !== i) nearest = Math.min(nearest, Math.abs(x[i] - x[j]));
    let total = 0;
    let sum = 0;
    for (let j = 0; j < n; j++) {
      const distance = Math.abs(x[i] - x[j]);
      weight[j] = j === i ? 0 : Math.exp(-0.5 * w * w * (distance - nearest) * (distance + nearest));
      total += weight[j];
      sum += weight[j] * y[j];
    }
    const prediction = sum / total;
    let moved = 0;
    for (let j = 0; j < n; j++) moved -= weight[j] * (x[i] - x[j]) ** 2 * (y[j] - prediction);
    error += (y[i] - prediction) ** 2 / n;
    slope += (2 * (prediction - y[i]) * moved * w) / total / n;
  }
  return { error, slope };
}
