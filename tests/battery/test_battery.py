"""Every answer of every option in every situation: what it is equivalent to, or refused with the remedy.

`make test` meets every option, answer and situation once; the gate meets every answer of every option in one situation,
and every two others as well; ``pytest -m night tests/battery`` is all of it. ``python -m tests.battery`` prints what
each option answers. A new option, answer or situation is tested here by being registered.
"""

import fnmatch
import inspect
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import kernpool
from tests.battery.__main__ import MARKS
from tests.battery.answers import ANSWERS
from tests.battery.options import OPTIONS
from tests.battery.situations import KNOWN, SITUATIONS, check

TABLE = (Path(__file__).parent / "table.txt").read_text().splitlines()
# What scikit-learn brings, and what hands over to objects whose own methods are asked.
PLUMBING = {"fit", "get_params", "set_params", "get_metadata_routing", "column_labels_"}
ESTIMATORS = [
    found
    for found in map(kernpool.__dict__.get, kernpool.__all__)
    if inspect.isclass(found) and issubclass(found, BaseEstimator)
]


def square():
    """Every pair of option and answer once, in situations that change along both: a Latin square."""
    names = list(SITUATIONS)
    return [
        (option, answer, names[(i + j) % len(names)])
        for i, option in enumerate(OPTIONS)
        for j, answer in enumerate(ANSWERS)
    ]


@pytest.mark.parametrize(("option", "answer", "situation"), square())
def test_an_answer_holds_or_is_refused(option, answer, situation):
    hold_or_be_known(option, answer, situation)


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("option", OPTIONS)
def test_all_answers_hold_or_are_refused(option, situation):
    failures = []
    for answer in ANSWERS:
        try:
            hold_or_be_known(option, answer, situation)
        except AssertionError as error:
            failures.append(f"{answer}: {error}")
    assert not failures, "\n".join(failures)


def hold_or_be_known(option, answer, situation):
    """Check a case; one of `KNOWN` has to fail, so that the table loses what is mended."""
    case = f"{option} | {answer} | {situation}"
    reasons = [reason for pattern, reason in KNOWN.items() if fnmatch.fnmatchcase(case, pattern)]
    try:
        how = check(option, answer, situation)
    except AssertionError:
        if not reasons:
            raise
    else:
        assert not reasons or how != "holds", f"{case} holds: take it from KNOWN, which says {reasons}"
        if situation == "again":
            row = TABLE[len(ANSWERS) + list(OPTIONS).index(option)]
            mark = row[max(map(len, OPTIONS)) + 1 :].ljust(len(ANSWERS))[list(ANSWERS).index(answer)]
            assert mark == MARKS[how], f"{case} is {how}, which table.txt has as {mark!r} (see __main__.py)"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_an_option(estimator):
    """Set to something else than the default, in an estimator that has it."""
    studies = [study.estimator for study in OPTIONS.values()]
    assert any(type(each) is estimator for each in studies)
    usual, met = estimator().get_params(deep=False), set()
    for each in studies:
        for name, value in each.get_params(deep=False).items():
            met |= {name} if name in usual and value is not usual[name] and value != usual[name] else set()
    assert set(usual) <= met


def test_every_argument_of_a_row_is_an_option():
    met = set().union(*(study.by_row for study in OPTIONS.values()))
    for estimator in ESTIMATORS:
        assert set(inspect.signature(estimator.fit).parameters) - {"self", "X", "y"} <= met


@pytest.mark.parametrize(
    "kind",
    [*ESTIMATORS, kernpool.Prediction, kernpool.ClassPrediction, kernpool.ConditionalDistribution, kernpool.Residuals],
)
def test_every_method_is_asked(kind):
    asked = set().union(*(words_of(answer.ask) for answer in ANSWERS.values()))
    fields = set(getattr(kind, "__dataclass_fields__", ())) | set(getattr(kind, "__annotations__", ()))
    public = {name for name in dir(kind) if not name.startswith(("_", "set_")) and not name.endswith("_")}
    public -= {name for name in public if isinstance(getattr(kind, name), int | str)}  # parameters of other classes
    assert public - PLUMBING - fields <= asked


def words_of(function):
    """Names of attributes and keywords in a function."""
    code = function.__code__
    return {*code.co_names, *(name for part in code.co_consts if isinstance(part, tuple) for name in part)}


def test_every_known_fault_is_of_cases():
    cases = [f"{o} | {a} | {s}" for o in OPTIONS for a in ANSWERS for s in (*SITUATIONS, "law")]
    for pattern, reason in KNOWN.items():
        assert reason
        assert fnmatch.filter(cases, pattern), pattern
