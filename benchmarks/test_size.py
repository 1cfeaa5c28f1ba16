"""Do the tests reject as often as they say? Size at 5 % by Monte Carlo, and power beside np's gradient test.

python benchmarks/test_size.py                        everything, about 25 minutes
python benchmarks/test_size.py --parts FILE NAME ...  some settings, or what FILE lacks of them; goes on after a stop
python benchmarks/test_size.py --parts FILE --page    the page of what FILE holds, however many runs these are
"""

from functools import cache, partial

import numpy as np
from measure import report, table
from monte_carlo import Tally, binomial_error, judged, study

from kernpool import NadarayaWatsonRegressor, specification_test

RUNS, RESAMPLES, LEVEL = 1000, 199, 0.05
SIZE, POWER_RATIO = (0.035, 0.065), 1.5
EFFECT = 0.4


def columns(seed, effect):
    """Two columns, noise that grows with the first; the second has a bump, or does nothing."""
    random = np.random.default_rng([seed, 1])
    X = random.uniform(size=(100, 2))
    y = np.sin(2 * np.pi * X[:, 0]) + effect * np.exp(-50 * (X[:, 1] - 0.5) ** 2)
    return X, y + (0.2 + 0.3 * X[:, 0]) * random.normal(size=100)


@cache
def fitted(seed, effect):
    return NadarayaWatsonRegressor(bandwidth="loo").fit(*columns(seed, effect))


def significance(seed, effect, **options):
    model = fitted(seed, effect)
    return model.significance_test(1, n_resamples=RESAMPLES, random_state=seed, **options).p_value


def specification(seed, effect):
    random = np.random.default_rng([seed, 2])
    x = random.uniform(-1, 1, size=(100, 1))
    y = 1 + x[:, 0] + effect * np.sin(np.pi * x[:, 0]) + (0.2 + 0.2 * np.abs(x[:, 0])) * random.normal(size=100)
    return specification_test(x, y, n_resamples=RESAMPLES, random_state=seed).p_value


# What is tested, a p-value of a seed and of how far from the null hypothesis rows are, and how far for the power.
TESTS = {
    "residual": ("`significance_test`, residual", significance, EFFECT),
    "gradient": ("`significance_test`, gradient", partial(significance, method="gradient"), EFFECT),
    "specification": ("`specification_test`", specification, 0.15),
}
SETTINGS = [f"{name}-{what}" for name in TESTS for what in ("size", "power")]
WITHOUT_BAR = {"gradient-size"}  # np's method, for comparison


def one(name: str, seed: int) -> dict[str, bool]:
    """Say whether a test rejects in one run."""
    test, what = name.split("-")
    _, p_value, effect = TESTS[test]
    return {"rejected": p_value(seed, effect if what == "power" else 0.0) <= LEVEL}


def rate(found: dict[str, Tally], name: str) -> tuple[float, float]:
    """Return the share of rejections, and its error."""
    share = float(found[name].share("rejected"))
    return share, float(binomial_error(share, found[name].runs))


def cell(found: dict[str, Tally], name: str) -> str:
    return "{:.1%} ± {:.1%} ({})".format(*rate(found, name), found[name].runs) if name in found else "not run"


def write(found: dict[str, Tally], *, keep: bool) -> list[str]:
    """Write the page, and return the targets that are missed."""
    rows, lost = [], []
    for name, (title, *_) in TESTS.items():
        size, power = f"{name}-size", f"{name}-power"
        bar = "none" if size in WITHOUT_BAR else "3.5 to 6.5 %"
        if size in found and size not in WITHOUT_BAR:
            said = judged(*rate(found, size), SIZE)
            lost += [f"{size} {100 * rate(found, size)[0]:.1f} %"] if said == "missed" else []
            bar += f", {said}" if said == "met" else f", **{said}**"
        rows.append([title, cell(found, size), bar, cell(found, power)])
    notes = [
        f"Rejections with their binomial errors, and in brackets the number of runs; {RESAMPLES} resamples, n = 100. "
        f"With {RUNS} runs a size of 5 % is measured with a standard deviation of "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / RUNS):.1%}. A size beside its target by less than two of its errors is "
        "*open*.",
        "*Columns*: `sin(2 pi x1)` with noise of sd `.2 + .3 x1`, in the alternative and "
        f"`{EFFECT} exp(-50 (x2 - .5)^2)`; local constant, bandwidths found anew in every run. The slopes' "
        "test is np's method, for comparison: it has no target.",
        "*Specification*: a line with noise of sd `.2 + .2 |x|`, and `.15 sin(pi x)`.",
    ]
    if {"residual-power", "gradient-power"} <= {*found}:
        ratio = rate(found, "residual-power")[0] / rate(found, "gradient-power")[0]
        word = "met" if ratio >= POWER_RATIO else "**missed**"
        told = (
            f"The residual test has {ratio:.2f} times the power of the gradient test (target: {POWER_RATIO}, {word})."
        )
        notes.insert(1, told)
        lost += [told] if ratio < POWER_RATIO else []
    head = "test | size at 5 % | target | power"
    report("test-size", "# Size and power of the hypothesis tests", table(head, rows), *notes, keep=keep)
    return lost


if __name__ == "__main__":
    study(__doc__, SETTINGS, RUNS, one, write)
