"""Options of `kernpool predict` that ask for more than predictions. Only the standard library, as in `main.py`."""

from __future__ import annotations

import argparse

INTERVAL_METHODS = (
    "adaptive", "full", "jackknife+", "minmax", "enclosure", "cv+", "split", "localized", "rlcp", "cqr", "jackknife",
)  # fmt: skip
SET_METHODS = ("lac", "aps", "raps", "full")


def add_what_is_beside(predict: argparse.ArgumentParser) -> None:
    """Add options for how sure the curve is, and for what to expect of the next value."""
    curve = predict.add_argument_group("how sure the curve is")
    curve.add_argument(
        "--se", action="store_true", help="write the standard error of each prediction beside it, as column Y_se"
    )
    curve.add_argument(
        "--interval",
        type=float,
        metavar="LEVEL",
        help="write intervals for the curve, such as 0.95: columns Y_center (bias taken off), Y_lower, Y_upper; with "
        "--method, intervals for the next value",
    )
    curve.add_argument(
        "--simultaneous",
        action="store_true",
        help="with --interval, cover all rows of DATA at once; of one column, the curve between them too",
    )
    curve.add_argument(
        "--variance",
        choices=["local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"],
        help="with --se and --interval, where the noise is taken from (default: local); sandwich where it jumps",
    )
    value = predict.add_argument_group("what to expect of the next value")
    value.add_argument(
        "--quantiles",
        metavar="LEVELS",
        help="write quantiles of Y, such as 0.1,0.5,0.9: columns Y_q0.1, Y_q0.5, Y_q0.9",
    )
    value.add_argument(
        "--method",
        choices=list(dict.fromkeys(INTERVAL_METHODS + SET_METHODS)),
        metavar="METHOD",
        help="with --interval 0.9, write prediction intervals, which hold the next value with that probability, as "
        f"columns Y_new_lower, Y_new_upper, by {', '.join(INTERVAL_METHODS)}; with --sets, by {', '.join(SET_METHODS)} "
        "(default: lac)",
    )
    value.add_argument(
        "--sets",
        type=float,
        metavar="LEVEL",
        help="of a classifier, write sets that hold the class of the next row with this probability, such as 0.9: a "
        "column Y_in_CLASS of 1 and 0 for each class; a set has the most probable class at least",
    )
    value.add_argument(
        "--calibration",
        metavar="FILE",
        help="table of further rows with their Y, which the model was not fitted to: they say how wide intervals have "
        "to be, and how large sets (default: the rows of the fit)",
    )
    value.add_argument("--seed", type=int, metavar="N", help="of methods that draw: cv+, rlcp, aps, raps (default: 0)")
