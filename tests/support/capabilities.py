"""What each algorithm says it can do, so that tests are collected for that and for nothing else.

Whether an algorithm still says what it said is another question, and that of `tests/algorithms/test_capabilities.py`.
"""

from functools import cache
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

from kernpool import Problem, get_kernel, make_kernel
from kernpool.algorithms import ALGORITHMS
from kernpool.core import MOST_COLUMNS
from tests.support.problems import VARIANTS

OTHERS = [
    name for name in ALGORITHMS if name != "reference"
]  # than the reference implementation, which all are compared with
MASK_OF_VARIANT = {"masked": "bool", "float mask": "float"}
OWN_KERNEL = make_kernel("gaussian", lambda u: 1 / (1 + u) ** 4)  # the name of a built-in one must not confuse anybody


def able(problem):
    """Names of the algorithms that can do this problem here and now."""
    return [name for name, algorithm in ALGORITHMS.items() if algorithm.refusal(problem) is None]


@cache
def tiny_problem(kernel="gaussian", columns=1, mask=None, degree=0):
    """Five queries and nine keys in which nothing is special but what is asked for."""
    generator = np.random.default_rng(0)
    query, key = generator.uniform(-1, 1, (5, columns)), generator.uniform(-1, 1, (9, columns))
    masks = {None: None, "bool": generator.random((5, 9)) < 0.8, "float": generator.normal(size=(5, 9))}
    return Problem.from_arrays(
        query, key, generator.normal(size=(9, 2)), kernel=OWN_KERNEL if kernel == "own" else get_kernel(kernel),
        bandwidth=2.0 * np.sqrt(columns), attn_mask=masks[mask], degree=degree,
    )  # fmt: skip


def variants(algorithm, names=VARIANTS, **features):
    """Return those of the variants of `tests.support.problems` whose mask the algorithm can do."""
    return [name for name in names if can(algorithm, mask=MASK_OF_VARIANT.get(name), **features)]


def missing_package(algorithm):
    """Return the package without which the algorithm cannot run here, or None."""
    needs = None if algorithm == "auto" else ALGORITHMS[algorithm].needs
    return needs[0] if needs is not None and find_spec(needs[0]) is None else None


@cache
def can(algorithm, **features):
    """Whether an algorithm does such problems where all packages are installed; features as of `tiny_problem`."""
    if algorithm == "auto":
        return True
    refusal = ALGORITHMS[algorithm].refusal(tiny_problem(**features))
    return refusal is None or "needs the package" in refusal


def can_here(algorithm, **features):
    """Whether an algorithm does such problems here and now."""
    return can(algorithm, **features) and missing_package(algorithm) is None


def param(algorithm, *values, marks=()):
    """Return the parameters of one test; it is skipped where the package that its algorithm needs is missing."""
    package = missing_package(algorithm)
    if package is not None:
        marks = pytest.mark.skip(reason=f"{algorithm} needs the package {package}")
    return pytest.param(algorithm, *values, marks=marks)


def algorithms(names=tuple(ALGORITHMS), **features):
    """Parametrise over the algorithms that can do such problems, in the argument `algorithm`.

    Parameters
    ----------
    names : sequence of str, optional
        Which are asked.
    **features
        As of `tiny_problem`, but that any number of columns will do if none is asked for. A feature that is a list is
        an argument of the test too, with every value that the algorithm can do. `variant`, of
        `tests.support.problems.VARIANTS`, stands for the mask that it has.
    """
    return pytest.mark.parametrize(*cases(names, **features))


def cases(names=tuple(ALGORITHMS), **features):
    """Return names and values of the arguments, as `algorithms` hands them to pytest."""
    axes = {name: values for name, values in features.items() if isinstance(values, list)}
    fixed = {name: value for name, value in features.items() if name not in axes}
    rows = []
    for algorithm in names:
        for values in product(*axes.values()):
            asked = fixed | dict(zip(axes, values, strict=True))
            if "variant" in asked:
                asked["mask"] = MASK_OF_VARIANT.get(asked.pop("variant"))
            asked.setdefault("columns", fitting_columns(algorithm))
            if can(algorithm, **asked):
                rows.append(param(algorithm, *values))
    return ["algorithm", *axes], rows


def of_degrees(names=tuple(ALGORITHMS), **features):
    """Parametrise as `algorithms` does, over local linear and quadratic fits.

    Those of degree two compile loops of their own: the Gaussian kernel is quick, all others are slow.
    """
    axes, rows = [], []
    for degree in (1, 2):
        if degree == 2 and isinstance(features.get("columns"), list):
            features["columns"] = [columns for columns in features["columns"] if columns <= MOST_COLUMNS]
        axes, found = cases(names, **features, degree=[degree])
        for row in found:
            more = [] if degree == 1 or "gaussian" in row.values else [pytest.mark.slow]
            rows.append(pytest.param(*row.values, marks=[*row.marks, *more]))
    return pytest.mark.parametrize(axes, rows)


def fitting_columns(algorithm, wanted=2):
    """Return the number of columns that the algorithm can do and that is nearest to what is wanted."""
    if algorithm == "auto":
        return wanted
    fewest, most = ALGORITHMS[algorithm].columns
    return min(max(wanted, fewest), most)
