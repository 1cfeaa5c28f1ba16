"""Whether an installed kernpool works with the extras that are named, and refuses what the other extras are for.

    python tools/check_extras.py [EXTRA ...]

Run by `.ci/wheels` in environments that have the wheel and one extra each. Every extra is tried by what a user calls;
one whose extra is missing has to say how to install it.
"""

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import kernpool

# Nothing of the package waits for these.
DEVELOPMENT = {"test", "lint", "docs", "bench", "browser", "grammar", "publish", "all"}
BRINGS = {"dask": {"arrow", "cli"}, "cli": {"arrow"}}  # data frames of dask need pandas and pyarrow
X, Y = np.linspace(0, 1, 40)[:, None], np.sin(np.linspace(0, 6, 40))


def script() -> list[str]:
    """Return the command that the wheel installs; an extra is a layer upon the environment that has it."""
    command = Path(sys.executable).with_name("kernpool")
    return [str(command)] if command.exists() else [sys.executable, "-m", "kernpool"]


def bare(folder: Path) -> None:
    """Fit, save, load, predict, and ask for the version at a terminal."""
    model = kernpool.LocalLinearRegressor().fit(X, Y)
    assert np.abs(model.predict(X) - Y).max() < 0.05
    kernpool.save_model(model, folder / "model")
    assert np.array_equal(kernpool.load_model(folder / "model").predict(X), model.predict(X))
    said = subprocess.run([*script(), "--version"], check=True, capture_output=True, text=True).stdout
    assert said.strip() == kernpool.__version__ == metadata("kernpool")["Version"], said


def plot(folder: Path) -> None:
    """Draw to a file."""
    model = kernpool.NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y)
    display = kernpool.KernelCurveDisplay.from_estimator(model, X, Y)
    display.figure_.savefig(folder / "curve.png")
    assert (folder / "curve.png").stat().st_size > 5000


def torch(_: Path) -> None:
    """Pool tensors, with a gradient."""
    from kernpool.torch import GaussianSimilarity, attention_pool  # first: it is this that has to refuse

    import torch  # isort: skip

    query = torch.tensor(X, requires_grad=True)
    pooled = attention_pool(query, torch.tensor(X), torch.tensor(Y[:, None]), similarity=GaussianSimilarity(0.1))
    pooled.sum().backward()
    assert torch.isfinite(query.grad).all()


def dask(_: Path) -> None:
    """Pool partitions, and get what an array gives."""
    from kernpool.dask import open_partitions

    import dask.array as da  # isort: skip

    key, value = da.from_array(X, chunks=(7, 1)), da.from_array(Y, chunks=7)
    pooled = np.asarray(kernpool.pool(X, open_partitions(key, value), bandwidth=0.1))
    np.testing.assert_allclose(pooled, kernpool.pool(X, X, Y, bandwidth=0.1), rtol=1e-12)


def arrow(folder: Path) -> None:
    """Read Parquet; what is no such file is refused only after pyarrow was found."""
    path = folder / "t.parquet"
    if find_spec("pyarrow"):
        from pyarrow import parquet, table

        parquet.write_table(table({"x": X[:, 0], "y": Y}), path)
    else:
        path.write_bytes(b"PAR1")
    pairs = kernpool.open_chunks(path, target="y")
    np.testing.assert_allclose(
        kernpool.pool(X, pairs, bandwidth=0.1), kernpool.pool(X, X, Y, bandwidth=0.1), rtol=1e-12
    )


def cli(folder: Path) -> None:
    """Fit a table and predict from another one at a terminal."""
    path = folder / "t.csv"
    path.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(X[:, 0], Y, strict=True)))
    for command in (["fit", path, "--target", "y", "--model", folder / "typed"], ["predict", folder / "typed", path]):
        done = subprocess.run([*script(), *command], check=False, capture_output=True, text=True)
        if done.returncode:
            raise ImportError(done.stderr)
    predicted = np.loadtxt(done.stdout.splitlines(), delimiter=",", skiprows=1)
    assert predicted.size == len(Y), done.stdout
    assert np.abs(predicted - Y).max() < 0.2, done.stdout


def nufft(_: Path) -> None:
    """Sum Gaussians by way of a grid."""
    key = np.random.default_rng(0).normal(size=(500, 2))
    value = key[:, 0]
    summed = kernpool.pool(key[:20], key, value, bandwidth=0.8, algorithm="nufft")
    np.testing.assert_allclose(summed, kernpool.pool(key[:20], key, value, bandwidth=0.8), rtol=1e-5, atol=1e-8)


EXTRAS: dict[str, tuple[str, Callable[[Path], None]]] = {  # the package that opens it, and what a user does
    "plot": ("matplotlib", plot),
    "torch": ("torch", torch),
    "dask": ("dask", dask),
    "arrow": ("pyarrow", arrow),
    "nufft": ("finufft", nufft),
    "cli": ("pandas", cli),
}


def check(extras: set[str], folder: Path) -> None:
    """Use every extra, and check that those missing say what to install."""
    offered = set(metadata("kernpool").get_all("Provides-Extra")) - DEVELOPMENT
    assert offered == set(EXTRAS), f"tools/check_extras.py has no function for {sorted(offered ^ set(EXTRAS))}"
    assert extras <= offered, f"no such extra: {sorted(extras - offered)}"
    if not extras:
        bare(folder)
    there = extras.union(*(BRINGS.get(extra, set()) for extra in extras))
    for extra, (package, use) in EXTRAS.items():
        assert (find_spec(package) is not None) == (extra in there), f"{package} beside {sorted(extras)}"
        try:
            use(folder)
        except (ImportError, ValueError) as error:
            if extra in there:
                raise
            assert f'pip install "kernpool[{extra}]"' in str(error), f"{extra} does not say what is missing: {error}"
        else:
            assert extra in there, f"{extra} works without {package}"


if __name__ == "__main__":
    at = Path(kernpool.__file__).resolve()
    assert "site-packages" in at.parts, f"{at} is a working tree and no installed wheel"
    with TemporaryDirectory() as name:
        check(set(sys.argv[1:]), Path(name))
    print(f"extras: {' '.join(sys.argv[1:]) or 'bare'}: works; all others say what to install")
