"""Tables of cases of which `make test` runs some, and the slow tests all."""

import pytest


def thinned(rows, columns, whole=()):
    """Return all pairs as parameters; most of those whose row is not among the whole ones are marked slow.

    Of the others every column is met by one row, in turns, so that nothing is missing from `make test` altogether.

    Parameters
    ----------
    rows, columns : sequence
        What is crossed, for instance kernels and situations.
    whole : collection, optional
        Rows that meet all columns.

    Returns
    -------
    list of pytest.param
        Of a row and a column each.
    """
    others = [row for row in rows if row not in whole]
    cases = []
    for row in rows:
        for number, column in enumerate(columns):
            quick = row in whole or number % len(others) == others.index(row)
            cases.append(pytest.param(row, column, marks=() if quick else pytest.mark.slow))
    return cases


def slow(*values):
    """Return parameters that run among the slow tests."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
