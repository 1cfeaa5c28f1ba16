"""`kernpool fit`: from a table to an estimator, with its report, its plot and its model file.

The report of a fit is one record, printed as lines for people or as JSON for programs.
"""

import argparse
import os
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from kernpool.cli.info import describe_fit
from kernpool.cli.tables import TrainingTable, training_rows
from kernpool.cli.terminal import given, print_json, refuse, say
from kernpool.data import refuse_existing, whole_file
from kernpool.data.encoding import COLUMN_CHECKS
from kernpool.displays import PartialDisplay, cover_glyphs, import_pyplot
from kernpool.estimators import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from kernpool.estimators.model import holder_of
from kernpool.estimators.persistence import check_model_file, save_model
from kernpool.execution import lines_of, progress_bar
from kernpool.inference import InferenceWarning
from kernpool.pooling import Nearest, choose

Report = dict[str, Any]

PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp")


def run_fit(options: argparse.Namespace) -> None:
    """Run `kernpool fit`: fit a model, print a report, save the model and plot the curve."""
    # output paths are checked before the computation
    check_outputs(options)
    model, training = fit_rows(options)
    report: Report = {}
    if options.json or not options.quiet:
        with progress_bar("leaving clusters out" if options.groups else "leaving one out", options.quiet):
            report = report_of(model, training, options.groups)
    if not (options.json or options.quiet):
        say_report(report)
    holder_of(model).set_params(n_jobs=None)  # the machine that loads the model has other processors
    with whole_file(Path(options.plot), force=options.force) if options.plot else nullcontext() as picture:
        if picture is not None:  # drawn before the model is written: either both outputs appear or none
            draw(model, options.target, picture)
        if options.model is not None:
            save_model(model, options.model, target=options.target, force=options.force)
    outputs = {what: output for what, output in (("model", options.model), ("picture", options.plot)) if output}
    if options.json:
        print_json(report | outputs)
        return
    for what, output in () if options.quiet else outputs.items():
        refers = f", which refers to {options.data}" if training.target is None else ""
        say(f"{what:<10} {output}{refers}")


def fit_rows(options: argparse.Namespace) -> tuple[Any, TrainingTable]:
    """Fit a model to the training table that the options name; for a categorical target, fit a classifier."""
    training = training_rows(options)
    model = build_model(options, classes=training.classes)
    model.set_params(**training.types, **given(options, *COLUMN_CHECKS))
    if vars(options).get("stack"):
        model = (KernelStackingClassifier if training.classes else KernelStackingRegressor)(model)
    with progress_bar("fitting", options.quiet):
        model.fit(training.X, training.target, **training.roles)
    return model, training


def build_model(options: argparse.Namespace, *, classes: bool = False) -> Any:
    """Build the unfitted estimator that the options describe; raise UsageError if they conflict."""
    planes = options.degree != "0"
    of_numbers = [name for name in ("degree", "ridge", "gap", "time") if vars(options).get(name) not in (None, "0")]
    refuse(
        (
            classes and of_numbers,
            f"--{' --'.join(of_numbers)} is for targets of numbers, and {options.target!r} holds classes; leave it out",
        ),
        (
            vars(options).get("stack") and given(options, "gap", "time"),
            "--stack leaves out rows or clusters, and not the rows next to them; leave --gap and --time out",
        ),
        (
            options.ridge is not None and not planes,
            "--ridge is for local lines: --degree 0 has no slopes, and stays in the range of Y; leave one of them out",
        ),
    )
    parameters = given(options, "kernel", "bandwidth", "smoothing", "ridge", "gap", "n_jobs")
    if options.neighbors is not None:
        parameters["window"] = Nearest(None if options.neighbors == "auto" else options.neighbors)
    kind = NadarayaWatsonClassifier if classes else LocalLinearRegressor if planes else NadarayaWatsonRegressor
    return kind(**parameters)


def check_outputs(options: argparse.Namespace) -> None:
    """Raise an error if an output of `kernpool fit` cannot be written, before the computation starts."""
    if options.model is not None:
        check_model_file(Path(options.model), options.force)
    if options.plot is not None:
        os.environ.setdefault("MPLBACKEND", "Agg")  # which needs no screen
        import_pyplot()  # fails before the computation if matplotlib is missing
        plot = Path(options.plot)
        refuse_existing(plot, options.force)
        kind = plot.suffix.removeprefix(".").lower()
        refuse(
            (
                options.model is not None and plot.resolve() == Path(options.model).resolve(),
                f"--model and --plot both name {options.plot!r}; name two files",
            ),
            (kind not in PICTURES, f"--plot must end in one of {', '.join(PICTURES)}, got {options.plot!r}"),
        )


def draw(model: object, target: str, path: Path) -> None:
    """Plot the fit over each feature into a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of points that nobody asked for; predict warns of those that somebody does
        warnings.simplefilter("always", InferenceWarning)  # of the band that is drawn
        display = PartialDisplay.from_estimator(model, target=target)
    cover_glyphs(display.figure_)  # its warning is of the picture that is asked for
    display.figure_.savefig(path, dpi=150)
    import_pyplot().close(display.figure_)


def report_of(model: Any, training: TrainingTable, groups: str | None) -> Report:
    """Return the report of a fit as a dictionary: settings and leave-one-out (or leave-cluster-out) error."""
    report: Report = describe_fit(model, training.names)
    local = holder_of(model)
    report |= {"columns": training.names, "kernel": local.kernel, "notes": training.notes}
    report["left_out"] = "row" if groups is None else "cluster"
    if local.gap:
        report["gap"] = local.gap
    if groups is not None:
        report["clusters"] |= {"column": groups}
    smoother = local.smoother_
    if smoother.recipe.ridge:
        report["ridge"] = float(smoother.recipe.ridge)
    y = training.target
    if y is None:  # rows in a file, of which a sample was left out one by one, if any
        return report | {"loo_error": getattr(model, "loo_error_", None), "note": model.bandwidth_note_}
    plan = choose(smoother.problem(smoother.points(smoother.keys.rows.array, smoother.key_code)), reuse=True)
    report |= {"algorithm": plan.algorithm, "reason": plan.reason}
    is_sampled = hasattr(model, "bandwidth_note_")
    if is_sampled:
        report["note"] = model.bandwidth_note_
    if is_sampled and not training.classes:  # a pass over all pairs of many rows may take minutes
        error, empty = model.loo_error_, model.loo_empty_windows_
    else:
        result = model.leave_one_out()
        error, empty = result.error, result.empty_windows
    if training.classes:
        probability = result.probability
        true = np.searchsorted(model.classes_, y)
        said = np.maximum(probability[np.arange(len(y)), true], np.finfo(float).tiny)
        report["loo_log_loss"] = float(-np.log(said).mean())
        report["loo_wrong"] = float((probability.argmax(axis=1) != true).mean())
    else:
        spread = float(((y - y.mean()) ** 2).mean())
        report["loo_error"] = float(error)
        report["loo_r2"] = 1 - float(error) / spread if spread else None
    return report | {"empty_windows": int(empty)}


def say_report(report: Report) -> None:
    """Print the report of a fit as text on standard error."""
    chunks, dates = "algorithm" not in report, report.get("dates", ())
    facts = {"rows": f"{report['rows']}{', read in chunks' * chunks}", "columns": ", ".join(report["columns"])}
    if dates:
        facts["dates"] = f"{', '.join(dates)}, in days since 1970-01-01"
    if "clusters" in report:
        c = report["clusters"]
        facts["clusters"] = (
            f"{c['column']}: {c['count']}, of {c['smallest']} to {c['largest']} rows, median {c['median']:g}"
        )
    if "classes" in report:
        facts["classes"] = ", ".join(map(str, report["classes"]))
    if report["estimator"] == NadarayaWatsonRegressor.__name__:
        facts["fit"] = "local means"
    elif report["estimator"] == LocalLinearRegressor.__name__:
        facts["fit"] = "local lines (local means: --degree 0)"
    if "members" in report:
        shares = (f"{share:.2f} {name.replace('_', ' ')}" for name, share in report["members"].items())
        facts["fit"] = f"{', '.join(shares)}; of the local member:"
    facts["kernel"] = report["kernel"]
    widths = [f"{name} {h:.6g}{' days' * (name in dates)}" for name, h in report["bandwidth"].items()]
    if widths:
        facts["bandwidth"] = ", ".join(widths)
    if "windows" in report:
        facts["windows"] = report["windows"]
    if "note" in report:
        facts[""] = report["note"]
    if "smoothing" in report:
        levels = report["levels"]
        parts = (f"{name} {x:.6g} ({len(levels[name])} levels)" for name, x in report["smoothing"].items())
        facts["smoothing"] = ", ".join(parts)
    if "ridge" in report:
        facts["ridge"] = f"{report['ridge']:.6g} rows"
    if "gap" in report:
        facts["gap"] = f"{report['gap']} rows on either side of each are left out with it"
    say("\n".join(lines_of(facts, 9)))
    left, errors = f"leave-{'one' if report['left_out'] == 'row' else 'cluster'}-out", {}
    if "classes" in report:
        errors[f"{left} log loss"] = f"{report['loo_log_loss']:.6g}"
        errors[f"{left} rows in the wrong class"] = f"{report['loo_wrong']:.4%}"
    elif report["loo_error"] is not None:
        searched = " (of the rows searched on)" * chunks or " (of the rows held out)" * ("note" in report)
        errors[f"{left} mean squared error"] = f"{report['loo_error']:.6g}{searched}"
    if report.get("loo_r2") is not None:
        errors[f"{left} R^2"] = f"{report['loo_r2']:.6g}"
    elif "loo_r2" in report:
        errors[f"{left} R^2"] = "undefined, as y is constant"
    if report.get("empty_windows"):
        errors[f"empty {left} windows"] = (
            f"{report['empty_windows']}, predicted by the mean of the other {report['left_out']}s"
        )
    if errors:
        say("\n".join(lines_of(errors)))
    if "algorithm" in report:
        say(f"algorithm  {report['reason'].partition(':')[0]}")
