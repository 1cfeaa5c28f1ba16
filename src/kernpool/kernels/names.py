"""Suggestions for names that are not known: what other libraries call the same thing, or the closest spelling."""

from __future__ import annotations

from collections.abc import Iterable

# Names of other libraries, and what is meant by them here: the first one that the argument accepts.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "rbf": ("gaussian",),
    "normal": ("gaussian",),
    "gauss": ("gaussian",),
    "squared_exponential": ("gaussian",),
    "uniform": ("boxcar",),
    "rectangular": ("boxcar",),
    "box": ("boxcar",),
    "quadratic": ("epanechnikov",),
    "parabolic": ("epanechnikov",),
    "bisquare": ("biweight",),
    "triangle": ("triangular",),
    "laplacian": ("laplace",),
    "flat": ("constant",),
    "cv": ("loo",),
    "cv.ls": ("loo",),
    "cv_ls": ("loo",),
    "cross_validation": ("loo",),
    "leave_one_out": ("loo",),
    "jackknife": ("loo",),
    "cv.aic": ("aicc",),
    "aic": ("aicc",),
    "dpi": ("plugin",),
    "plug_in": ("plugin",),
    "direct_plugin": ("plugin",),
    "cv_ml": ("log_loss",),
    "cross_entropy": ("log_loss",),
    "auto": ("log_loss", "regularised"),
    "default": ("log_loss", "regularised", "auto"),
    "regularized": ("regularised",),
    "normal_reference": ("scott",),
    "aitchisonaitken": ("aitchison_aitken",),
    "wangryzin": ("wang_van_ryzin",),
    "liracine": ("li_racine", "li_racine_ordered"),
    "tree": ("kd_tree",),
    "ball_tree": ("kd_tree",),
    "fft": ("nufft",),
    "fourier": ("nufft",),
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the suggestion for a name that is not known, as the beginning of a clause; nothing without one.

    Parameters
    ----------
    name : str
        What the caller passed.
    known : iterable of str
        What the argument accepts.

    Returns
    -------
    str
        ``"did you mean 'gaussian'? "``, or an empty string.

    Examples
    --------
    >>> did_you_mean("rbf", ["boxcar", "gaussian"]), did_you_mean("box car", ["boxcar", "gaussian"])
    ("did you mean 'gaussian'? ", "did you mean 'boxcar'? ")
    >>> did_you_mean("something", ["boxcar", "gaussian"])
    ''
    """
    able, plain = list(known), name.strip().lower().replace("-", "_").replace(" ", "_")
    found = [meant for meant in SYNONYMS.get(plain, ()) if meant in able]
    if not found:
        from difflib import get_close_matches

        found = get_close_matches(plain, able, n=1, cutoff=0.5)
    return f"did you mean {found[0]!r}? " if found else ""
