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

from kernpool.cli.beside import Beside
from kernpool.cli.chunked import fit_in_chunks, load_for_tables, predict_in_chunks, report_notes
from kernpool.cli.describing import describe_model
from kernpool.cli.kept import beside_inputs, plain_json, query_rows, records_of
from kernpool.cli.parsing import parse_bandwidth, parse_memory, parse_numbers
from kernpool.cli.reporting import report_of, say_report
from kernpool.cli.tables import Training, listed, say_notes, say_notes_of_records, training_rows
from kernpool.cli.terminal import UsageError, bar, is_terminal, need_output, progress_bar, say
from kernpool.cli.testing import run_test
from kernpool.cli.uncertainty import named_summary, need_rows
from kernpool.data.checks import as_bandwidth
from kernpool.data.files import refuse_existing, whole_file
from kernpool.data.folders import check_model_folder, read_header
from kernpool.data.mixed import Mixed
from kernpool.data.tables import table_format
from kernpool.data.writers import write_table
from kernpool.displays import KernelCurveDisplay, import_pyplot
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.estimators.parameters import NAMED_BANDWIDTHS, NAMED_FOR_CLASSES, check_ridge
from kernpool.estimators.regression import KernelRegressor
from kernpool.estimators.saving import MODELS, load_model, save_model
from kernpool.execution.threads import resolve_n_jobs
from kernpool.execution.warnings import warn_caller
from kernpool.kernels import get_kernel
from kernpool.pages.tour import LANGUAGES, LARGEST_SEED, make_tour

__all__ = ["run_fit", "run_info", "run_predict", "run_test", "run_tour"]

PICTURES = ("png", "svg", "pdf", "jpg", "jpeg", "webp")
ONLY_FOR_CLASSES = tuple(set(NAMED_FOR_CLASSES) - set(NAMED_BANDWIDTHS))
LEAVE_NONE_OUT = ("aicc", "gcv", "plugin")  # bandwidths that leave no rows out, and so no clusters


def run_fit(options: argparse.Namespace) -> None:
    """Fit, report, save, draw; outputs are checked before the long work."""
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


def fit_rows(options: argparse.Namespace, model: Any) -> tuple[Any, Training]:
    """Fit a model to the rows that the options name; a target of classes makes it a classifier."""
    smoothing = None if options.smoothing is None else parse_numbers("--smoothing", options.smoothing)
    training = training_rows(options)
    if training.classes:
        model = as_classifier(options)
    elif options.bandwidth in ONLY_FOR_CLASSES:
        raise UsageError(
            f"--bandwidth {options.bandwidth} is of classifiers, and {options.target!r} holds numbers; leave it out, "
            f"or say --unordered {options.target} if they are classes"
        )
    features, mixed = training.features, isinstance(training.features.X, Mixed)
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


def print_json(what: Any) -> None:
    """Print a result on standard output; what is no number becomes null."""
    print(json.dumps(plain_json(what), indent=2, ensure_ascii=False))


def as_classifier(options: argparse.Namespace) -> NadarayaWatsonClassifier:
    """Return the unfitted classifier that the options ask for."""
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
    """Return the unfitted model that the options ask for; what cannot be meant is a usage error."""
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
        if not isinstance(X, Mixed):  # whose columns have names
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
    asked = asked.ready(model, options, header)
    X, table = query_rows(options, model, header)
    with progress_bar("predicting", options.quiet):
        columns = asked.columns(model, X, header["target"] or "prediction", model.predict)
    columns = beside_inputs(columns, table, header["target"] or "prediction", options)
    kept = () if options.keep is None else listed(options.keep) or table.names
    if not options.json:
        write_table(options.out, columns, force=options.force, kept=kept)
    elif options.out == "-":
        print_json(records_of(columns))
        say_notes_of_records(table, options)
    else:
        write_table(options.out, columns, force=options.force, kept=kept)
        print_json(
            {"out": options.out, "rows": len(X), "columns": list(columns), "notes": [*table.notes, *asked.notes]}
        )
    say_notes(table, options)
    report_notes(asked, options.quiet or options.json)


def run_info(options: argparse.Namespace) -> None:
    """Describe a model on standard output: as JSON, or by the summary of its fit."""
    need_output("open it")
    model, header = load_model(options.model), read_header(options.model, MODELS)
    if options.summary:
        if not isinstance(model, NadarayaWatsonClassifier):
            need_rows(model, options.model, "--summary")
        summary = named_summary(model, header["features"])
        print_json(summary) if options.json else print(summary)
        return
    print_json(describe_model(model, header))


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
    if options.json:
        print_json({"tour": str(page)})
    elif not options.quiet:
        say(f"tour       {page}")
    if options.open:
        webbrowser.open(page.as_uri())
