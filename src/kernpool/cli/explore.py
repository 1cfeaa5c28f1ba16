"""`kernpool explore`: the interactive explorer of a fit."""

import argparse
from pathlib import Path
from zipfile import is_zipfile

from kernpool.cli.fit import build_model, fit_rows
from kernpool.cli.info import load_named
from kernpool.cli.tables import TrainingTable, open_table
from kernpool.cli.terminal import UsageError, given, print_json, refuse, say
from kernpool.data import TableError, refuse_existing
from kernpool.explorer import Explorer, explore
from kernpool.explorer.explorer_model import GENERATORS

# Options of a generator, and those that do not change the rows or the fit.
GENERATED = {"seed", "kernel", "bandwidth", "degree", "ridge", "neighbors"}
ALWAYS = {"command", "run", "version", "data", "out", "lang", "force", "jobs", "quiet", "json"}


def run_explore(options: argparse.Namespace) -> None:
    """Run `kernpool explore`: write the explorer to a page."""
    refuse_existing(Path(options.out), options.force)
    explorer, notes = explorer_of(options)
    page = explorer.to_html(options.out, force=options.force)
    if options.json:
        print_json({"page": str(page), "rows": explorer.subject.rows, "notes": notes})
    elif not options.quiet:
        say(f"page       {page}")


def explorer_of(options: argparse.Namespace) -> tuple[Explorer, list[str]]:
    """Return the interactive explorer of a generator, a saved model or a table, and notes on reading the table."""
    if options.data in GENERATORS:
        _refuse_unused(options, GENERATED, f"{options.data} makes its rows: one column of numbers and y")
        options.degree = options.degree or "0"  # as the lesson, which is about means
        parameters = build_model(options).get_params() | {"degree": int(options.degree)}
        return explore(options.data, seed=options.seed or 0, language=options.lang, **parameters), []
    generators = " and ".join(GENERATORS)
    refuse((options.seed is not None, f"--seed: {options.data} is no generator; those are {generators}; leave it out"))
    path = Path(options.data)
    if options.target is None:
        if options.data != "-" and not path.exists():
            raise TableError(
                f"{options.data} does not exist; name a table and its --target, a file written by kernpool fit "
                f"--model, or one of {', '.join(GENERATORS)}"
            )
        if path.is_dir() or not is_zipfile(path):  # as files of models are
            names = ", ".join(map(repr, open_table(options).frame))
            text = f"--target must name the column of {options.data} that the others explain; columns are {names}"
            raise UsageError(text)
        _refuse_unused(options, set(), f"{path.name} is a fitted model; kernpool fit makes another one")
        model, header = load_named(path)
        return explore(model, target=header["target"], title=path.name, language=options.lang), []
    model, training = fit_rows(options)
    load = _loading_code(options, training)
    source = "standard input" if options.data == "-" else path.name
    title = f"{options.target} by {', '.join(training.names)} ({source})"
    explorer = explore(model, target=options.target, title=title, language=options.lang, load=load)
    return explorer, training.notes


def _refuse_unused(options: argparse.Namespace, used: set[str], why: str) -> None:
    """Raise UsageError for options that were given but have no effect."""
    unused = ", ".join(f"--{name}" for name in given(options, *vars(options)) if name not in used | ALWAYS)
    refuse((unused, f"{unused}: {why}; leave {'them' if ', ' in unused else 'it'} out"))


def _loading_code(options: argparse.Namespace, training: TrainingTable) -> str:
    """Return Python code that loads features and target; only a comment if pandas may read the table differently."""
    readers = {".csv": "read_csv", ".parquet": "read_parquet"}
    suffix = Path(options.data).suffix.lower()
    is_plain = suffix in readers and not training.notes and options.missing != "drop"
    named = given(options, "sep", "decimal", "encoding", "na", "dates", "ordered", "format")
    if not is_plain or named or training.types["unordered"]:
        # As literals: a name with an end of a line in it would leave the comment, and be run.
        return f"# X, y: columns {[*training.names]!r} and {options.target!r} of {options.data!r}"
    return (
        f"import pandas as pd\n\ntable = pd.{readers[suffix]}({options.data!r})\n"
        f"X, y = table[{training.names!r}], table[{options.target!r}]"
    )
