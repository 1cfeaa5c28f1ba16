"""Coverage statements of prediction intervals: one sentence that claims no more than the method guarantees.

`METHODS` in `methods.py` names the function of each method. The sentence depends on which rows calibrate, whether the
search for the bandwidth has seen them, and what makes rows not exchangeable.
"""

from kernpool.conformal.calibration import COPIED, ConformalProblem
from kernpool.conformal.jackknife_plus import fold_sizes


def at_least(setting: ConformalProblem, promised: str | None = None) -> str:
    """Return the coverage statement of a method that guarantees the level, or the given lower coverage `promised`.

    Parameters
    ----------
    setting : ConformalProblem
        Problem whose calibration rows and bandwidth determine the statement.
    promised : str, optional
        Guaranteed coverage if it is not the level, such as ``"1 - 2 alpha, here 0.8"``.

    Returns
    -------
    str
        One sentence.

    Notes
    -----
    Coverage is that of a new row, averaged over the calibration rows as well: it is neither conditional on a point
    nor on the rows at hand. It assumes exchangeable rows.
    """
    if setting.doubt:
        return approximately(setting, setting.doubt)
    number = f"{float(setting.level):g}" if promised is None else promised
    what = "a new value" if not setting.calibration.clusters else "a value of a new cluster"
    new, over = _for_new_rows(setting), _averaged_over(setting)
    return f"Covers {what} with a probability of at least {number}{new}, on average over {over}."


def _for_new_rows(setting: ConformalProblem) -> str:
    """Return the phrase of a coverage statement that says for which new rows it holds; empty under covariate shift.

    Likelihood ratios describe new rows by themselves.
    """
    if setting.calibration.shift is not None:
        return ""
    return f" for new {'clusters' if setting.calibration.clusters else 'rows'} like these"


def _averaged_over(setting: ConformalProblem) -> str:
    """Return the end of a coverage statement: what its probability is averaged over, and what it assumes."""
    calibration = setting.calibration
    rows = "clusters" if calibration.clusters else "rows"
    if calibration.shift is not None:
        kind, unseen = ("training" if calibration.own or calibration.held_back else "calibration"), ""
        if calibration.own:
            searched = setting.bandwidth == "unsearched"
            what = "the search for the bandwidth has not seen" if searched else "did not choose the bandwidth"
            unseen = f", which {what},"
        elif not calibration.held_back:
            unseen = ", which the fit has not seen,"
        return (
            f"new points and {kind} rows, if new rows differ from the {calibration.rows:g} rows that "
            f"calibrate{unseen} by the likelihood ratios in weights= and in nothing else"
        )
    if calibration.held_back:
        return (
            f"new points and training rows, if new rows are exchangeable with the {calibration.rows:g} training rows "
            "that were held back from the fit"
        )
    if not calibration.own:
        return (
            f"new points and calibration {rows}, if new {rows} are exchangeable with these and the fit has "
            "seen none of them"
        )
    if setting.bandwidth == "unsearched":
        return (
            f"new points and training rows, if new rows are exchangeable with the {calibration.rows:g} training rows "
            "that the search for the bandwidth has not seen"
        )
    return (
        f"new points and training {rows}, if new {rows} are exchangeable with these and the bandwidth was not chosen "
        "by them"
    )


def approximately(setting: ConformalProblem, why: str) -> str:
    """Return the coverage statement of a method without a finite-sample guarantee, with the reason.

    If rows are copies of others, that is the reason given: copies do more harm than the loss of a guarantee.
    """
    why = COPIED if setting.doubt == COPIED else why
    what = "a new value" if not setting.calibration.clusters else "a value of a new cluster"
    return (
        f"Covers {what} with a probability of about {float(setting.level):g}{_for_new_rows(setting)}, without a "
        f"finite-sample guarantee: {why}."
    )


def of_adaptive(setting: ConformalProblem) -> str:
    """Return the coverage statement of intervals of adaptive width: approximate if training rows calibrate."""
    if not setting.calibration.own:
        return at_least(setting)
    return approximately(
        setting,
        "the scale of the scores was estimated on the same training rows; with X_calibration there is one",
    )


def of_jackknife(setting: ConformalProblem) -> str:
    """Return the coverage statement of jackknife intervals, which have no finite-sample guarantee."""
    return approximately(
        setting, "the jackknife covers in the limit of many rows if the fit hardly depends on any one of them"
    )


def of_jackknife_plus(setting: ConformalProblem) -> str:
    """Return the coverage statement of jackknife+ intervals: at least 1 - 2 alpha for a level of 1 - alpha."""
    return _of_plus(setting, float(2 * setting.level - 1), "1 - 2 alpha")


def of_cv_plus(setting: ConformalProblem) -> str:
    """Return the coverage statement of CV+ intervals: at least 1 - 2 alpha minus a small term."""
    folds, size = fold_sizes(setting.calibration.rows)
    rows = folds * size
    less = 0.0
    if rows:
        less = min(2.0 * (1.0 - 1.0 / folds) / (size + 1.0), (1.0 - folds / rows) / (folds + 1.0))
    return _of_plus(setting, float(2 * setting.level - 1) - less, f"1 - 2 alpha - {less:.3g}")


def _of_plus(setting: ConformalProblem, number: float, formula: str) -> str:
    if setting.doubt or number <= 0.0:
        return approximately(setting, setting.doubt or f"the least that holds, {formula}, is none at this level")
    least = f"{number:.4g} ({formula}), and typically about {float(setting.level):g}"
    return at_least(setting, least)
