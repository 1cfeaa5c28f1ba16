"""Too small, right, too large: leave-one-out finds the bandwidth without knowing the truth."""

from kernpool import BandwidthPathDisplay, NadarayaWatsonRegressor
from kernpool.datasets import make_sine_power

x_train, y_train, x_test, y_truth = make_sine_power(random_state=0)
found = NadarayaWatsonRegressor(bandwidth="loo").fit(x_train[:, None], y_train)
print(f"best bandwidth {found.bandwidth_[0]:.4f}, leave-one-out error {found.loo_error_:.4f}")

for bandwidth in (0.05, found.bandwidth_[0], 3.0):
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(x_train[:, None], y_train)
    error = ((model.predict(x_test[:, None]) - y_truth) ** 2).mean()
    print(f"h = {bandwidth:.3f}: leave-one-out {model.leave_one_out().error:.3f}, against the truth {error:.3f}")

BandwidthPathDisplay.from_estimator(found).figure_.savefig("bandwidth-path.png")
