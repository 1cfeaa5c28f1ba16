"""What the commands of the command line do: tables to estimators, estimators to tables and pictures."""

from __future__ import annotations

import argparse
import json
import os
import sys
import webbrowser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.bandwidth import LeaveOneOut
from kernpool.cli.beside import Beside
from kernpool.cli.chunked import QUERIES, fit_in_chunks, load_for_tables, predict_in_chunks, report_notes
from kernpool.cli.describing import describe_model
from kernpool.cli.parsing import parse_bandwidth, parse_features, parse_memory
from kernpool.cli.terminal import UsageError, bar, is_terminal, need_output, progress_bar, say
from kernpool.cli.testing import run_test
from kernpool.cli.uncertainty import need_rows, summary_of
from kernpool.core.problem import Problem
from kernpool.data.checks import as_bandwidth
from kernpool.data.files import refuse_existing, whole_file
from kernpool.data.folders import check_model_folder, read_header
from kernpool.data.tables import Advice, Table, read_table, table_format, write_table
from kernpool.displays import KernelCurveDisplay, import_pyplot
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.estimators.fitted import scaled_keys
from kernpool.estimators.parameters import NAMED_BANDWIDTHS, check_ridge
from kernpool.estimators.regression import KernelRegressor
from kernpool.estimators.saving import MODELS, load_model, save_model
from kernpool.execution.threads import resolve_n_jobs
from kernpool.kernels import get_kernel
from kernpool.pages.tour import LANGUAGES, LARGEST_SEED, make_tour
from kernpool.pooling.choice import choose

__all__ = ["run_fit", "run_info", "run_predict", "run_test", "run_tour"]

FEATURES = Advice(
    "correct or drop such rows, or leave the column out with --features",
    "encode it as numbers first, leave it out with --features, or fit a frame in Python, which may have text and "
    "categories",
)
TARGET = Advice(
    "correct or drop such rows",
    "name a column of numbers with --target; labels are for NadarayaWatsonClassifier, in Python",
)
PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp")
LEAVE_NONE_OUT = ("aicc", "gcv", "plugin")  # bandwidths that leave no rows out, and so no clusters


def run_fit(options: argparse.Namespace) -> None:
    """Fit, report, save, draw; outputs are checked before the long work."""
    memory = parse_memory(options.memory)
    model = build_model(options)
    check_outputs(options)
    if memory is not None:
        fit_in_chunks(model, options, memory)
        return
    table = read_table(options.data, options.format)
    groups = None if options.groups is None else table.labels(options.groups)
    features = choose_features(table, options.target, options.features, options.groups)
    X, y = table.numbers(features, FEATURES), table.numbers([options.target], TARGET)[:, 0]
    with progress_bar("fitting", options.quiet):
        model.fit(X, y, groups=groups)
    if not options.quiet:
        with progress_bar("leaving one out" if groups is None else "leaving clusters out", options.quiet):
            result = model.leave_one_out()
        report_fit(model, features, y, result, options.groups)
    summary = summary_of(model, features) if options.summary else None  # which may be refused: before outputs
    model.set_params(n_jobs=None)  # the machine that loads the model has other processors
    with whole_file(Path(options.plot), force=options.force) if options.plot else nullcontext() as picture:
        if picture is not None:  # drawn before the model is written: either both outputs appear or none
            draw(model, X, y, features, options.target, picture)
        if options.model is not None:
            save_model(model, options.model, features=features, target=options.target, force=options.force)
    if not options.quiet:
        for what, output in (("model", options.model), ("picture", options.plot)):
            if output is not None:
                say(f"{what:<10} {output}")
    if summary is not None:
        print(summary)


def build_model(options: argparse.Namespace) -> KernelRegressor:
    """Return the unfitted model that the options ask for; what cannot be meant is a usage error."""
    bandwidth = parse_bandwidth(options.bandwidth, NAMED_BANDWIDTHS)
    if options.groups is not None and bandwidth in LEAVE_NONE_OUT:
        raise UsageError(
            f"--groups leaves whole clusters out, and --bandwidth {bandwidth} leaves no rows out; use regularised, loo "
            "or numbers, or leave --groups out"
        )
    if options.groups is not None and options.groups == options.target:
        raise UsageError(f"--groups names the target {options.target!r}; name the column of the clusters")
    try:
        get_kernel(options.kernel)
        resolve_n_jobs(options.jobs)
        if not isinstance(bandwidth, str):
            as_bandwidth(bandwidth, np.size(bandwidth))
        check_ridge(options.ridge)
    except ValueError as error:
        raise UsageError(str(error)) from None
    common = {"composition": options.composition, "scale": options.scale, "n_jobs": options.jobs}
    if options.degree:
        planes = {"extrapolate": options.extrapolate or "plane", "ridge": options.ridge}
        return LocalLinearRegressor(options.kernel, bandwidth, **planes, **common)
    if options.ridge is not None:
        raise UsageError("--ridge is for --degree 1: means have no slopes")
    if options.extrapolate is not None:
        raise UsageError("--extrapolate is for --degree 1: means do not leave the range of what they are of")
    return NadarayaWatsonRegressor(options.kernel, bandwidth, **common)


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse outputs that could not be written, before the long work."""
    if options.summary:
        need_output("open it")
    if options.model is not None:
        check_model_folder(Path(options.model), options.force)
    if options.plot is not None:
        import_matplotlib_early()
        refuse_existing(Path(options.plot), options.force)
        if options.model is not None and Path(options.plot).resolve() == Path(options.model).resolve():
            raise UsageError(f"--model and --plot both name {options.plot!r}")
        suffix = Path(options.plot).suffix.removeprefix(".").lower()
        if suffix not in PICTURES:
            raise UsageError(f"--plot must end in one of {', '.join(PICTURES)}, got {options.plot!r}")


def choose_features(table: Table, target: str, listed: str | None, groups: str | None = None) -> list[str]:
    """Return the columns to predict from: those listed, or all that have no other part."""
    table.need([target])
    features = parse_features(listed, target) or [name for name in table.names if name not in (target, groups)]
    if not features:
        others = repr(target) if groups is None else f"{target!r} and {groups!r}"
        raise UsageError(f"--features must name at least one column, and {table.source} has none beside {others}")
    return features


def report_fit(
    model: KernelRegressor, features: list[str], y: Any, result: LeaveOneOut, groups: str | None = None
) -> None:
    """Print what was fitted and how well it predicts rows, or whole clusters, that it has not seen."""
    spread = float(((y - y.mean()) ** 2).mean())
    key = scaled_keys(model)
    problem = Problem.from_arrays(
        key, key, y, kernel=model.kernel, bandwidth=model.bandwidth_, composition=model.composition
    )
    plan = choose(problem, model.algorithm, often=True)
    say(f"rows       {len(y)}")
    say(f"columns    {', '.join(features)}")
    if groups is not None:
        sizes = np.bincount(model.key_group_)
        median = f"{np.median(sizes):g}"
        say(f"clusters   {groups}: {len(sizes)}, of {sizes.min()} to {sizes.max()} rows, median {median}")
    say(f"kernel     {model.kernel}")
    found = ", ".join(f"{name} {h:.6g}" for name, h in zip(features, model.bandwidth_, strict=True))
    say(f"bandwidth  {found}{' (in ranks, from 0 to 1)' if model.scale == 'rank' else ''}")
    if vars(model).get("ridge_"):
        say(f"ridge      {model.ridge_:.6g} rows")
    left = "leave-one-out" if groups is None else "leave-cluster-out"
    say(f"{left} mean squared error  {result.error:.6g}")
    say(
        f"{left} R^2                 {1 - result.error / spread:.6g}"
        if spread
        else "y is constant, so R^2 is undefined"
    )
    if result.empty_windows:
        others = "rows" if groups is None else "clusters"
        say(f"empty {left} windows       {result.empty_windows}, predicted by the mean of the other {others}")
    say(f"algorithm  {plan.algorithm} ({plan.reason})")


def import_matplotlib_early() -> None:
    """Fail before the long work if pictures cannot be drawn, and draw without a screen."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    import_pyplot()


def draw(model: KernelRegressor, X: Any, y: Any, features: list[str], target: str, path: Path) -> None:
    """Draw the fitted curve, one panel per feature, into a file."""
    plt = import_pyplot()
    size = (6.4 * len(features), 4.4)
    figure, axes = plt.subplots(1, len(features), figsize=size, squeeze=False, layout="constrained")
    for i, (ax, name) in enumerate(zip(axes[0], features, strict=True)):
        KernelCurveDisplay.from_estimator(model, X, y, feature=i, target=target, ax=ax)
        ax.set_xlabel(name)
        if len(features) > 1:
            ax.set_title(f"over {name}, other columns at their median", fontsize=10)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run_predict(options: argparse.Namespace) -> None:
    """Predict the rows of a table."""
    memory = parse_memory(options.memory)
    try:
        resolve_n_jobs(options.jobs)
    except ValueError as error:
        raise UsageError(str(error)) from None
    asked = Beside.of(options)
    if options.out == "-":
        need_output("name a file with --out")
    else:
        table_format(options.out)
        refuse_existing(Path(options.out), options.force)
    if memory is not None or options.cluster is not None:
        predict_in_chunks(options, memory, asked)
        return
    model, header = load_for_tables(options)
    asked = asked.ready(model, options.model, header)
    X = read_table(options.data, options.format).numbers(header["features"], QUERIES)
    with progress_bar("predicting", options.quiet):
        columns = asked.columns(model, X, header["target"] or "prediction", model.predict)
    write_table(options.out, columns, force=options.force)
    report_notes(asked, options.quiet)


def run_info(options: argparse.Namespace) -> None:
    """Describe a model on standard output: as JSON, or by the summary of its fit."""
    need_output("open it")
    model, header = load_model(options.model), read_header(options.model, MODELS)
    if options.summary:
        need_rows(model, options.model, "--summary")
        print(summary_of(model, header["features"]))
        return
    print(json.dumps(describe_model(model, header), indent=2))


def run_tour(options: argparse.Namespace) -> None:
    """Write the tour, and show it if asked to."""
    if options.lang not in LANGUAGES:
        raise UsageError(f"--lang must be {' or '.join(LANGUAGES)}, got {options.lang!r}")
    if not 0 <= options.seed < LARGEST_SEED:
        raise UsageError(f"--seed must be in [0, {LARGEST_SEED}), got {options.seed}")
    os.environ.setdefault("MPLBACKEND", "Agg")
    listener = None if options.quiet or not is_terminal() else bar("drawing")
    page = make_tour(options.out, language=options.lang, seed=options.seed, force=options.force, progress=listener)
    if listener is not None:
        sys.stderr.write("\r\033[K")
    if not options.quiet:
        say(f"tour       {page}")
    if options.open:
        webbrowser.open(page.as_uri())
