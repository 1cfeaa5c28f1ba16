"""`kernpool explore`: a table, a model or a generator in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from kernpool.cli.commands import build_model, fit_rows, print_json
from kernpool.cli.tables import Training
from kernpool.cli.terminal import UsageError, say
from kernpool.data.files import refuse_existing
from kernpool.estimators.saving import load_model
from kernpool.pages.explorer import Explorer, explore
from kernpool.pages.explorer.explore import LANGUAGES
from kernpool.pages.explorer.server import ExplorerServer, serve
from kernpool.pages.explorer.subject import GENERATORS

LARGEST_PORT = 65535


def run_explore(options: argparse.Namespace) -> None:
    """Write a page with --out; else serve one until Ctrl-C."""
    if options.lang is not None and options.lang not in LANGUAGES:
        raise UsageError(f"--lang must be {' or '.join(LANGUAGES)}, got {options.lang!r}")
    if not 0 <= options.port <= LARGEST_PORT:
        raise UsageError(f"--port must be in [0, {LARGEST_PORT}], got {options.port}")
    if options.out is not None:
        refuse_existing(Path(options.out), options.force)
    explorer, notes = explorer_of(options)
    if options.out is None:
        _serve(explorer, notes, options)
        return
    page = explorer.to_html(options.out, force=options.force)
    if options.json:
        print_json({"page": str(page), "rows": explorer.subject.rows, "notes": notes})
    elif not options.quiet:
        say(f"page       {page}")


def explorer_of(options: argparse.Namespace) -> tuple[Explorer, list[str]]:
    """Return the explorer of a generator, of a saved model or of a table with a target, and notes of reading."""
    if options.data in GENERATORS:
        return explore(options.data, seed=options.seed, language=options.lang), []
    path = Path(options.data)
    if options.target is None:
        if not path.is_dir():
            raise UsageError(f"--target must name the column of {options.data} that the others explain")
        return explore(load_model(path), language=options.lang, title=path.name), []
    model, training = fit_rows(options, build_model(options))
    load = _loading(options, training)
    title = f"{options.target}, {'standard input' if options.data == '-' else path.name}"
    return explore(model, target=options.target, title=title, language=options.lang, load=load), training.notes


def _loading(options: argparse.Namespace, training: Training) -> str:
    """Return Python that makes X and y of a table: of one that pandas reads as we did, else a comment."""
    readers = {".csv": "read_csv", ".parquet": "read_parquet"}
    suffix = Path(options.data).suffix.lower()
    is_plain = suffix in readers and not training.notes and options.missing != "drop"
    given = [options.sep, options.decimal, options.encoding, options.na, options.dates, options.ordered, options.format]
    if not is_plain or any(option is not None for option in given) or training.features.unordered:
        return f"# X, y: columns {', '.join(training.names)} and {options.target} of {options.data}"
    return (
        f"import pandas as pd\n\ntable = pd.{readers[suffix]}({options.data!r})\n"
        f"X, y = table[{training.names!r}], table[{options.target!r}]"
    )


def _serve(explorer: Explorer, notes: list[str], options: argparse.Namespace) -> None:
    def started(server: ExplorerServer) -> None:
        if options.json:
            print_json({"url": server.url, "rows": explorer.subject.rows, "notes": notes})
        else:
            say(f"explorer   {server.url}")
        if not (options.quiet or options.json):
            say("Ctrl-C ends it")
        if not options.no_open:
            webbrowser.open(server.url)

    try:
        serve(explorer.subject, port=options.port, language=options.lang, started=started)
    except KeyboardInterrupt:  # is how it ends
        if not (options.quiet or options.json):
            say("ended")
    except OSError as error:
        raise UsageError(f"--port {options.port}: {error.strerror}; leave it out, and a free one is taken") from None
