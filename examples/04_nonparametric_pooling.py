"""Nothing learned: nearer keys weigh more. Try other kernels and bandwidths."""

from kernpool import AttentionDisplay, KernelCurveDisplay, pool, pooling_weights
from kernpool.datasets import make_sine_power

kernel, bandwidth = "gaussian", 1.0

x_train, y_train, x_test, y_truth = make_sine_power(random_state=0)
weights = pooling_weights(x_test, x_train, kernel=kernel, bandwidth=bandwidth)
prediction = pool(x_test, x_train, y_train, kernel=kernel, bandwidth=bandwidth)
print("weights", weights.shape, "largest", weights.max().round(3))
print("weights @ values equals pool up to", abs(weights @ y_train - prediction).max())
print("mean squared error", ((prediction - y_truth) ** 2).mean().round(3))

KernelCurveDisplay.from_predictions(
    x_test, prediction, x_train=x_train, y_train=y_train, truth=y_truth
).figure_.savefig("nonparametric-pooling.png")
AttentionDisplay.from_weights(weights, x_label="sorted training inputs", y_label="sorted test inputs").figure_.savefig(
    "weights.png"
)
