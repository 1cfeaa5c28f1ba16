"""`kernpool explore`: a table or a model in the browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from kernpool.cli.parsing import parse_bandwidth, parse_features
from kernpool.cli.terminal import UsageError, progress_bar, say
from kernpool.data.files import refuse_existing
from kernpool.estimators.parameters import NAMED_BANDWIDTHS
from kernpool.estimators.saving import load_model
from kernpool.pages.explorer import Explorer, explore
from kernpool.pages.explorer.explore import LANGUAGES
from kernpool.pages.explorer.server import ExplorerServer, serve
from kernpool.pages.explorer.subject import GENERATORS

LARGEST_PORT = 65535


def run_explore(options: argparse.Namespace) -> None:
    """Explore a table, a model or a generator: as a page with --out, else in the browser until Ctrl-C."""
    if options.lang is not None and options.lang not in LANGUAGES:
        raise UsageError(f"--lang must be {' or '.join(LANGUAGES)}, got {options.lang!r}")
    if not 0 <= options.port <= LARGEST_PORT:
        raise UsageError(f"--port must be in [0, {LARGEST_PORT}], got {options.port}")
    if options.out is not None:
        refuse_existing(Path(options.out), options.force)
    explorer = explorer_of(options)
    if options.out is not None:
        page = explorer.to_html(options.out, force=options.force)
        if not options.quiet:
            say(f"page       {page}")
        if options.open:
            webbrowser.open(page.resolve().as_uri())
        return

    def started(server: ExplorerServer) -> None:
        say(f"explorer   {server.url}")
        if not options.quiet:
            say("Ctrl-C ends it")
        if options.open:
            webbrowser.open(server.url)

    try:
        serve(explorer.subject, port=options.port, language=options.lang, started=started)
    except OSError as error:
        raise UsageError(f"--port {options.port}: {error.strerror}; leave it out, and a free one is taken") from None


def explorer_of(options: argparse.Namespace) -> Explorer:
    """Return the explorer of what is named: a generator, a model's folder, or a table with a target."""
    if options.data in GENERATORS:
        return explore(options.data, seed=options.seed, language=options.lang)
    if options.target is None:
        if not Path(options.data).is_dir():
            raise UsageError(f"--target must name the column of {options.data} that the others explain")
        return explore(load_model(options.data), language=options.lang, title=Path(options.data).name)
    return _fitted(options)


def _fitted(options: argparse.Namespace) -> Any:
    raise NotImplementedError
