"""Commands as users type them: in a process of their own, or in this one with streams of their own."""

import io
import subprocess
import sys

import pytest

from kernpool.cli import main


def process(*arguments, stdin=b"", cwd=None):
    """One command as a user runs it."""
    command = [sys.executable, "-m", "kernpool", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, check=False)


def kernpool(*arguments, stdin=b"", cwd="."):
    """One command with streams of its own, but in this process: a new one takes two seconds to load scikit-learn."""
    streams = {"stdin": stdin, "stdout": b"", "stderr": b""}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        for name, content in streams.items():
            patch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse ends like this
            code = stop.code
        out, error = sys.stdout.buffer.getvalue(), sys.stderr.buffer.getvalue()
    return subprocess.CompletedProcess(arguments, code, out, error)
