"""Every object that prints, and every command, prints what stands in the session of its name."""

import re

import pytest

import kernpool
from kernpool.execution.text_table import PrintedResult
from tests.public.printed import FILES, session


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of few rows
def test_what_is_printed(path):
    if path.stem == "layers":
        pytest.importorskip("torch", reason="layers need torch")
    expected = path.read_text(encoding="utf-8")
    assert session(path) == expected, "look at the difference that python -m tests.public.printed makes"


def test_every_record_has_a_session():
    assert all(hasattr(kernpool, name) for name in kernpool.__all__)  # which loads their modules
    names = (record.__name__ for record in PrintedResult.__subclasses__())
    assert {re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower() for name in names} <= {path.stem for path in FILES}
