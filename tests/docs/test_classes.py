"""The examples of the page on classes run."""

import doctest
from pathlib import Path

import numpy as np

PAGE = Path(__file__).resolve().parents[2] / "docs" / "classes.md"


def test_the_examples_run():
    with np.printoptions():
        failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 10
    assert failed == 0
