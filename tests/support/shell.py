"""Lines of a terminal as pages show them, run in this process: a new one takes seconds to load what commands need.

Of a shell there is what pages use: pipes, files written to by ``>``, comments, lines that go on. Of commands there are
``kernpool``, ``printf`` and ``cat``; of ``make``, ``pip`` and ``python`` it is looked up whether their target, extra or
script exists. Anything else is an error, so that no line goes unnoticed.
"""

import re
import shlex
from pathlib import Path

from tests.support.blocks import ROOT
from tests.support.commands import kernpool

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def run(code, folder):
    """Run the lines of a block in a folder; an error names the line."""
    for line in code.replace("\\\n", " ").splitlines():
        words = words_of(line)
        try:
            pipeline(words, folder) if words else None
        except AssertionError as error:
            raise AssertionError(f"{line}\n{error}") from error


def words_of(line):
    """The words of a line, without its comment."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="|>&;")
    reader.whitespace_split = True
    return list(reader)


def pipeline(words, folder):
    """Commands that read what the one before them wrote."""
    passed, command = b"", []
    for word in [*words, "|"]:
        if word != "|":
            command.append(word)
            continue
        assert command, "a pipe without a command"
        passed = one(command, passed, folder)
        command = []
    return passed


def one(words, stdin, folder):
    """One command, and its standard output; none if that went into a file."""
    into = None
    if ">" in words:
        place = words.index(">")
        words, into = words[:place], folder / words[place + 1]
    out = COMMANDS[words[0]](words[1:], stdin, folder) if words[0] in COMMANDS else None
    assert out is not None, f"{words[0]} is no command that pages may show: tests/support/shell.py has those"
    if into is None:
        return out
    into.write_bytes(out)
    return b""


def _kernpool(words, stdin, folder):
    done = kernpool(*words, stdin=stdin, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _printf(words, stdin, folder):
    assert "%" not in "".join(words), "printf is for text as it is"
    (text,) = words
    return text.replace("\\n", "\n").encode()


def _cat(words, stdin, folder):
    return b"".join((folder / word).read_bytes() for word in words) or stdin


def _make(words, stdin, folder):
    targets = [word for word in words if "=" not in word]
    assert set(targets) <= TARGETS, f"the Makefile has {', '.join(sorted(TARGETS))}"
    return b""


def _pip(words, stdin, folder):
    """Looked at, not run: the extras exist."""
    extras = {name for word in words for names in re.findall(r"\[([\w,]+)\]", word) for name in names.split(",")}
    known = set(re.findall(r"^(\w+) = \[", PROJECT.partition("[project.optional-dependencies]")[2], re.MULTILINE))
    assert words[0] == "install"
    assert extras <= known, f"pyproject.toml has the extras {', '.join(sorted(known))}"
    return b""


def _python(words, stdin, folder):
    """Looked at, not run: the script exists, and tests of its kind run it."""
    assert words[0].endswith(".py")
    assert (ROOT / words[0]).exists(), f"there is no {words[0]}"
    return b""


def _gate(words, stdin, folder):
    """Looked at, not run: it takes half an hour, and the night longer."""
    assert not words, "the gate takes no arguments"
    return b""


def _cd(words, stdin, folder):
    assert not Path(words[0]).is_absolute()
    return b""


COMMANDS = {
    "kernpool": _kernpool, "printf": _printf, "cat": _cat, "make": _make, "pip": _pip, "python": _python, "cd": _cd,
    ".ci/run": _gate, ".ci/nightly": _gate,
}  # fmt: skip
