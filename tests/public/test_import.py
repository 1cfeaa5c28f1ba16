"""What importing and small problems load, and what they leave to later."""

import subprocess
import sys

import pytest


def loaded_after(code):
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}


HEAVY = {"numba", "torch", "sklearn", "matplotlib", "scipy", "pandas", "pyarrow", "joblib"}


@pytest.mark.parametrize(
    "code",
    [
        "import kernpool",
        "import kernpool; kernpool.pool(range(50), range(50), range(50))",
        "import kernpool; kernpool.pooling_weights(range(50), range(50), kernel='epanechnikov')",
    ],
)
def test_small_problems_load_numpy_alone(code):
    modules = loaded_after(code)
    assert not HEAVY & modules
    assert ("numpy" in modules) == ("(" in code)


def test_estimators_of_few_rows_load_no_compiler():
    rows = "[[float(i)] for i in range(50)], range(50)"
    code = f"from kernpool import LocalLinearRegressor\nLocalLinearRegressor(bandwidth=9.0).fit({rows})"
    assert {"sklearn", "numba"} & loaded_after(code) == {"sklearn"}


def test_help_loads_not_even_numpy():
    code = (
        "import contextlib\nfrom kernpool.cli.main import main\n"
        "with contextlib.suppress(SystemExit):\n    main(['fit', '--help'])"
    )
    assert not {*HEAVY, "numpy"} & loaded_after(code)


def test_everything_public_is_there():
    import kernpool

    for name in kernpool.__all__:
        try:
            assert getattr(kernpool, name) is not None
        except ImportError as error:  # an extra is not installed
            assert name.startswith("Dask"), name
            assert 'pip install "kernpool[dask]"' in str(error)  # noqa: PT017  # with the extra nothing is raised
    assert set(kernpool.__all__) <= set(dir(kernpool))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kernpool.nothing  # noqa: B018  # the access is the test


def test_names_of_the_other_module_say_where_they_are():
    """By an AttributeError, so that `hasattr` works for tools that inspect modules."""
    pytest.importorskip("torch", reason="torch is an optional extra")
    import kernpool.torch

    assert kernpool.torch.__all__ == kernpool._IN_TORCH
    with pytest.raises(AttributeError, match=r"no attribute 'AttentionPooling'; it is in kernpool.torch$"):
        kernpool.AttentionPooling  # noqa: B018
    assert not hasattr(kernpool, "masked_softmax")
