"""The baseline that ignores the query: the mean of all values, which is the constant kernel."""

from kernpool import KernelCurveDisplay, pool
from kernpool.datasets import make_sine_power

x_train, y_train, x_test, y_truth = make_sine_power(random_state=0)
prediction = pool(x_test, x_train, y_train, kernel="constant")
print("mean squared error", ((prediction - y_truth) ** 2).mean().round(3))

KernelCurveDisplay.from_predictions(
    x_test, prediction, x_train=x_train, y_train=y_train, truth=y_truth
).figure_.savefig("average-pooling.png")
