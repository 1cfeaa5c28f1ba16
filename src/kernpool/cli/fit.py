"""`kernpool fit`: from a table to an estimator, with its report, its plot and its model folder.

The report of a fit is one record, printed as lines for people or as JSON for programs.
"""

import argparse
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.cli.info import describe_columns
from kernpool.cli.out_of_core import fit_in_chunks
from kernpool.cli.prediction_columns import named_summary
from kernpool.cli.tables import TrainingTable, print_json, training_rows
from kernpool.cli.terminal import (
    UsageError,
    need_output,
    parse_bandwidth,
    parse_memory,
    parse_numbers,
    progress_bar,
    say,
)
from kernpool.data import MixedTable, as_bandwidth
from kernpool.data.atomic_files import refuse_existing, whole_file
from kernpool.data.model_format import check_model_folder
from kernpool.displays import KernelCurveDisplay, import_pyplot
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.estimators.fitted_model import problem_of
from kernpool.estimators.parameter_validation import ACCEPTED, NAMED_BANDWIDTHS, NAMED_FOR_CLASSES
from kernpool.estimators.persistence import save_model
from kernpool.estimators.regressors import KernelRegressor
from kernpool.execution.threads import resolve_n_jobs
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import get_kernel
from kernpool.pooling import choose

Report = dict[str, Any]

PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp")
ONLY_FOR_CLASSES = tuple(set(NAMED_FOR_CLASSES) - set(NAMED_BANDWIDTHS))
LEAVE_NONE_OUT = ("aicc", "gcv", "plugin")  # bandwidths that leave no rows out, and so no clusters


def run_fit(options: argparse.Namespace) -> None:
    """Run `kernpool fit`: fit a model, print a report, save the model and plot the curve.

    Output paths are checked before the computation.
    """
    memory = parse_memory(options.memory)
    model = build_model(options)
    check_outputs(options)
    if memory is not None:
        fit_in_chunks(model, options, memory)
        return
    model, training = fit_rows(options, model)
    report = None
    if options.json or not options.quiet:
        with progress_bar("leaving one out" if training.groups is None else "leaving clusters out", options.quiet):
            report = report_of(model, training, options.groups)
    if report is not None and not options.json:
        say_report(report)
    summary = named_summary(model, training.names) if options.summary else None  # which may be refused: before outputs
    model.set_params(n_jobs=None)  # the machine that loads the model has other processors
    with whole_file(Path(options.plot), force=options.force) if options.plot else nullcontext() as picture:
        if picture is not None:  # drawn before the model is written: either both outputs appear or none
            draw(model, training.features.X, training.target, training.names, options.target, picture)
        if options.model is not None:
            save_model(model, options.model, features=training.names, target=options.target, force=options.force)
    outputs = {what: output for what, output in (("model", options.model), ("picture", options.plot)) if output}
    if options.json:
        # A report is a dict here.
        print_json(report | outputs | ({} if summary is None else {"summary": summary}))  # type: ignore[operator]
        return
    for what, output in outputs.items():
        if not options.quiet:
            say(f"{what:<10} {output}")
    if summary is not None:
        print(summary)


def fit_rows(options: argparse.Namespace, model: Any) -> tuple[Any, TrainingTable]:
    """Fit a model to the training table that the options name; for a categorical target, fit a classifier."""
    smoothing = None if options.smoothing is None else parse_numbers("--smoothing", options.smoothing)
    training = training_rows(options)
    if training.classes:
        model = as_classifier(options)
    elif options.bandwidth in ONLY_FOR_CLASSES:
        raise UsageError(
            f"--bandwidth {options.bandwidth} is for classifiers, and {options.target!r} holds numbers; leave it out, "
            f"or say --unordered {options.target} if they are classes"
        )
    features, mixed = training.features, isinstance(training.features.X, MixedTable)
    levels = mixed and any(isinstance(cells, list) for cells in features.X.columns.values())
    if levels and options.plot is not None:
        warn_caller(
            "--plot draws columns of numbers, and some hold levels, so there will be no picture; name columns of "
            "numbers with --features"
        )
        options.plot = None
    model.set_params(unordered=features.unordered or None, ordered=features.ordered or None, smoothing=smoothing)
    options.columns = None if levels else training.names  # by which warnings about an array call its columns
    with progress_bar("fitting", options.quiet):
        model.fit(features.X, training.target, groups=training.groups)
    if mixed:
        model.feature_names_in_ = np.array(training.names, dtype=object)
    return model, training


def as_classifier(options: argparse.Namespace) -> NadarayaWatsonClassifier:
    """Build the unfitted classifier that the command-line options describe."""
    for name, given in (
        ("--degree 1", options.degree),
        ("--plot", options.plot is not None),
    ):
        if given:
            raise UsageError(f"{name} is for targets of numbers, and {options.target!r} holds classes; leave it out")
    bandwidth = "log_loss" if options.bandwidth is None else parse_bandwidth(options.bandwidth, NAMED_FOR_CLASSES)
    return NadarayaWatsonClassifier(
        options.kernel, bandwidth, composition=options.composition, scale=options.scale, n_jobs=options.jobs
    )


def build_model(options: argparse.Namespace) -> KernelRegressor:
    """Build the unfitted regressor that the options describe; raise UsageError for invalid or contradictory options."""
    given = "regularised" if options.bandwidth in (None, *ONLY_FOR_CLASSES) else options.bandwidth
    bandwidth = parse_bandwidth(given, NAMED_BANDWIDTHS)
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
        ACCEPTED["ridge"].check("ridge", options.ridge)
    except ValueError as error:
        raise UsageError(str(error)) from None
    common = {"composition": options.composition, "scale": options.scale, "n_jobs": options.jobs}
    if options.degree:
        planes = {"extrapolate": options.extrapolate or "plane", "ridge": options.ridge}
        return LocalLinearRegressor(options.kernel, bandwidth, **planes, **common)
    if options.ridge is not None:
        raise UsageError("--ridge is for --degree 1: means have no slopes")
    if options.extrapolate is not None:
        raise UsageError("--extrapolate is for --degree 1: local means never leave the range of Y")
    return NadarayaWatsonRegressor(options.kernel, bandwidth, **common)


def check_outputs(options: argparse.Namespace) -> None:
    """Raise an error if an output of `kernpool fit` cannot be written, before the computation starts."""
    if options.summary:
        need_output("open it")
    if options.model is not None:
        check_model_folder(Path(options.model), options.force)
    if options.plot is not None:
        import_matplotlib_early()
        refuse_existing(Path(options.plot), options.force)
        if options.model is not None and Path(options.plot).resolve() == Path(options.model).resolve():
            raise UsageError(f"--model and --plot both name {options.plot!r}; give them different names")
        suffix = Path(options.plot).suffix.removeprefix(".").lower()
        if suffix not in PICTURES:
            raise UsageError(f"--plot must end in one of {', '.join(PICTURES)}, got {options.plot!r}")


def import_matplotlib_early() -> None:
    """Import matplotlib with a backend that needs no screen; fail before the computation if it is missing."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    import_pyplot()


def draw(model: KernelRegressor, X: Any, y: Any, features: list[str], target: str, path: Path) -> None:
    """Plot the fitted curve into a file, one panel per feature."""
    plt = import_pyplot()
    size = (6.4 * len(features), 4.4)
    figure, axes = plt.subplots(1, len(features), figsize=size, squeeze=False, layout="constrained")
    for i, (ax, name) in enumerate(zip(axes[0], features, strict=True)):
        KernelCurveDisplay.from_estimator(model, X, y, feature=i, target=target, ax=ax)
        if not isinstance(X, MixedTable):  # whose columns have names
            ax.set_xlabel(name)
        if len(features) > 1:
            ax.set_title(f"over {name}, other columns at their median", fontsize=10)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def report_of(model: Any, training: TrainingTable, groups: str | None) -> Report:
    """Return the report of a fit as a dictionary: settings and leave-one-out (or leave-cluster-out) error."""
    result, y = model.leave_one_out(), training.target
    plan = choose(problem_of(model, None), model.algorithm, reuse=True)
    report: Report = {
        "estimator": type(model).__name__,
        "rows": len(y),
        "columns": training.names,
        "kernel": model.kernel,
        **describe_columns(model, training.names),
    }
    if training.features.dates:
        report["dates"] = training.features.dates
    if groups is not None:
        sizes = np.bincount(model.key_group_)
        report["clusters"] = {
            "column": groups,
            "count": len(sizes),
            "smallest": int(sizes.min()),
            "median": float(np.median(sizes)),
            "largest": int(sizes.max()),
        }
    report["scale"] = model.scale
    if vars(model).get("ridge_"):
        report["ridge"] = float(model.ridge_)
    report["left_out"] = "row" if groups is None else "cluster"
    if training.classes:
        report |= _of_classes(model, result, y)
    else:
        spread = float(((y - y.mean()) ** 2).mean())
        report["loo_error"] = float(result.error)
        report["loo_r2"] = 1 - float(result.error) / spread if spread else None
    report["empty_windows"] = int(result.empty_windows)
    report["algorithm"], report["reason"] = plan.algorithm, plan.reason
    report["notes"] = training.notes
    return report


def _of_classes(model: Any, result: Any, y: Any) -> Report:
    probability = result.probability
    true = np.searchsorted(model.classes_, y)
    said = probability[np.arange(len(y)), true]
    return {
        "classes": model.classes_.tolist(),
        "loo_log_loss": float(-np.log(np.maximum(said, np.finfo(float).tiny)).mean()),
        "loo_wrong": float((probability.argmax(axis=1) != true).mean()),
    }


def say_report(report: Report) -> None:
    """Print the report of a fit as text on standard error."""
    say(f"rows       {report['rows']}")
    say(f"columns    {', '.join(report['columns'])}")
    if "dates" in report:
        say(f"dates      {', '.join(report['dates'])}, in days since 1970-01-01")
    if "clusters" in report:
        c = report["clusters"]
        say(
            f"clusters   {c['column']}: {c['count']}, of {c['smallest']} to {c['largest']} rows, median {c['median']:g}"
        )
    if "classes" in report:
        say(f"classes    {', '.join(map(str, report['classes']))}")
    say(f"kernel     {report['kernel']}")
    dates = report.get("dates", ()) if report["scale"] == "raw" else ()
    found = ", ".join(f"{name} {h:.6g}{' days' * (name in dates)}" for name, h in report["bandwidth"].items())
    if found:
        say(f"bandwidth  {found}{' (in ranks, from 0 to 1)' if report['scale'] == 'rank' else ''}")
    if "smoothing" in report:
        levels = report["levels"]
        parts = (f"{name} {x:.6g} ({len(levels[name])} levels)" for name, x in report["smoothing"].items())
        say(f"smoothing  {', '.join(parts)}")
    if "ridge" in report:
        say(f"ridge      {report['ridge']:.6g} rows")
    left = "leave-one-out" if report["left_out"] == "row" else "leave-cluster-out"
    if "classes" in report:
        say(f"{left} log loss  {report['loo_log_loss']:.6g}")
        say(f"{left} rows in the wrong class  {report['loo_wrong']:.4%}")
    else:
        say(f"{left} mean squared error  {report['loo_error']:.6g}")
        r2 = report["loo_r2"]
        say("y is constant, so R^2 is undefined" if r2 is None else f"{left} R^2                 {r2:.6g}")
    if report["empty_windows"]:
        others = "rows" if report["left_out"] == "row" else "clusters"
        say(f"empty {left} windows       {report['empty_windows']}, predicted by the mean of the other {others}")
    say(f"algorithm  {report['algorithm']} ({report['reason']})")
