"""Bandwidths of other packages: the page that explains them is right, and the estimators take them."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from kernpool import convert_bandwidth, get_kernel, make_kernel
from kernpool.kernels import BUILT_IN, CONVENTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "bandwidth-conventions.md").read_text(encoding="utf-8")
FIRST = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "bandwidth_conventions.py"))
CHECKS = {name.removeprefix("check_"): check for name, check in SCRIPT.items() if name.startswith("check_")}


def table():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    start = next(i for i, row in enumerate(rows) if row[0] == "kernel")
    return rows[start], rows[start + 2 :]


def test_the_table():
    head, rows = table()
    assert head == ["kernel", *CONVENTIONS]
    assert [row[0] for row in rows] == list(BUILT_IN)
    for kernel, *cells in rows:
        for convention, cell in zip(CONVENTIONS, cells, strict=True):
            if cell == "–":
                with pytest.raises(ValueError, match=f"convention '{convention}' has no kernel '{kernel}'"):
                    convert_bandwidth(1.0, kernel, source=convention)
            else:
                assert convert_bandwidth(1.0, kernel, source=convention) == pytest.approx(float(cell), abs=6e-7)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")  # statsmodels, about random numbers it does not use
def test_the_worked_checks(convention):
    if convention == "std":
        pytest.importorskip("statsmodels", reason="the extra 'bench' has it")
    CHECKS[convention]()


def test_the_first_example_of_the_page():
    lines = FIRST.splitlines()
    names = {}
    exec(lines[0], names)
    assert eval(lines[2], names) == pytest.approx(0.67, abs=5e-3)
    assert eval(lines[3], names) == pytest.approx(0.3, abs=5e-3)


@pytest.mark.parametrize("kernel", [name for name in BUILT_IN if name != "constant"])
def test_what_the_general_conventions_promise(kernel):
    """Densities scaled to h: standard deviation h, and R(K_h) = mu_2(K_h)^2 at the canonical bandwidth 1."""
    record = get_kernel(kernel)

    def moment(scale, power, order):
        end = min(record.support, 40.0)
        density = lambda u: record.profile(np.array([u]))[0] / record.integral  # noqa: E731  # one line
        found = 2 * quad(lambda u: u**order * density(u) ** power, 0, end, limit=200)[0]
        return found * scale ** (order + 1 - power)

    assert moment(convert_bandwidth(0.7, kernel, source="std"), 1, 2) == pytest.approx(0.49)
    scale = convert_bandwidth(1.0, kernel, source="canonical")
    assert moment(scale, 2, 0) == pytest.approx(moment(scale, 1, 2) ** 2)


@pytest.mark.parametrize("source", CONVENTIONS)
@pytest.mark.parametrize("target", CONVENTIONS)
def test_there_and_back(source, target):
    given = np.array([[0.1, 2.0], [30.0, 4.0]])
    there = convert_bandwidth(given, "gaussian", source=source, target=target)
    assert there.shape == given.shape
    np.testing.assert_allclose(convert_bandwidth(there, "gaussian", source=target, target=source), given, rtol=1e-15)


def test_what_cannot_be_converted():
    with pytest.raises(ValueError, match=r"source must be one of 'support', 'np', .* got 'sas'"):
        convert_bandwidth(1.0, source="sas")
    with pytest.raises(ValueError, match=r"'np' has no kernel 'tricube', it has gaussian, epanechnikov, boxcar; use"):
        convert_bandwidth(1.0, "tricube", source="np")
    with pytest.raises(ValueError, match="'std' has no kernel 'constant', whose second moment is inf"):
        convert_bandwidth(1.0, "constant", target="std")
    for wrong in (0.0, -1.0, np.nan, -np.inf, "loo", [1.0, 0.0], None):
        with pytest.raises(ValueError, match="bandwidth must be a positive number"):
            convert_bandwidth(wrong)
    assert convert_bandwidth(np.inf, source="np") == np.inf
    mine = make_kernel("gaussian", lambda u: np.maximum(1 - u**2, 0.0), support=1.0)  # not the one that np knows
    with pytest.raises(ValueError, match="'np' has no kernel 'gaussian'"):
        convert_bandwidth(1.0, mine, source="np")
    assert convert_bandwidth(1.0, mine, source="std") == pytest.approx(np.sqrt(5))
