"""`explore`: the interactive view of a kernel regression, in a notebook, as a page, or from Python."""

from collections.abc import Sequence
from html import escape
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool.data import refuse_other_labels, whole_file
from kernpool.datasets import RegressionSample
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.execution import abbreviate, check_choice
from kernpool.explorer.explorer_model import ExplorerModel, Truth, render_page, subject_of_generator, subject_of_model

LANGUAGES = ("en", "zh")


class Explorer:
    """Interactive view of a kernel regression: in a notebook, as a page, or from Python.

    In a notebook it displays itself, as a frame. Made by `explore`.

    Attributes
    ----------
    subject : ExplorerModel
        The model with its data, names and settings.
    language : {"en", "zh"} or None
        None follows the browser.
    """

    def __init__(self, subject: ExplorerModel, language: str | None = None) -> None:
        check_choice("language", language, [*LANGUAGES, None])
        self.subject = subject
        self.language = language

    def html(self) -> str:
        """Return the explorer as one self-contained HTML page (training rows, program and styles; no network requests).

        Of more than 100 000 rows it has a random sample, and says so.
        """
        return render_page(self.subject, self.language)

    def to_html(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the explorer to the file `path`, as one self-contained HTML page.

        Parameters
        ----------
        path : str or Path
            Where, such as ``explorer.html``. Works from a file, in an e-mail, on any server.
        force : bool, default=False
            Replace a file that is there.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        FileExistsError
            If there is a file of that name, and `force` is false.
        """
        text = self.html()
        with whole_file(Path(path), force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page in an iframe, which a notebook shows."""
        return (
            f'<iframe srcdoc="{escape(self.html())}" title="kernpool explorer" sandbox="allow-scripts" '
            'style="width: 100%; height: 900px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        model = type(self.subject.model).__name__
        return f"Explorer({model}, {self.subject.rows} rows, {self.subject.title!r})"


def explore(
    data: Any = "make_sine_power",
    y: ArrayLike | None = None,
    *,
    truth: Truth | None = None,
    degree: int | None = None,
    seed: int | None = None,
    target: str | None = None,
    title: str | None = None,
    language: str | None = None,
    column: int | str | None = None,
    query: Sequence[Any] | None = None,
    load: str | None = None,
    **parameters: Any,
) -> Explorer:
    r"""Explore a kernel regression interactively: change bandwidth and query, and see weights and curve change.

    .. math:: \hat y(q) = \sum_j \alpha_j(q)\, y_j, \qquad \alpha_j(q) \propto K\Big(\frac{q - x_j}{h}\Big)

    Parameters
    ----------
    data : fitted estimator, array_like or frame of shape (n, d), RegressionSample, or str, default="make_sine_power"
        A fitted Nadaraya-Watson or local linear model; or rows X, to which one is fitted; or what `kernpool.datasets`
        returns; or the name of one of its generators, whose page offers both generators and ten seeds to a class.
    y : array_like of shape (n,), optional
        Numbers, or labels of classes (text or booleans), of rows X.
    truth : callable or pair of array_like, optional
        The true function along the first numeric column, vectorized, or its points and values.
    degree : {0, 1}, optional
        Of the model that is fitted: local lines by default, means for a generator, as in the lesson.
    seed : int, optional
        Of a generator; by default 0.
    target : str, optional
        What y is called; by default the name that it has, as a column of a frame, or else "y".
    title : str, optional
        Of the page.
    language : {"en", "zh"}, optional
        English or Simplified Chinese; by default the browser's.
    column : int or str, optional
        Number or name of the numeric column that the curve runs along first; by default the first one.
    query : sequence, optional
        A row of X, to begin with; by default the middle of the rows.
    load : str, optional
        Python that makes X and y, which "copy as Python" begins with.
    **parameters
        Of the estimator that is fitted, such as ``bandwidth=0.3``.

    Returns
    -------
    Explorer
        Displays itself in a notebook; `Explorer.to_html` writes a page.

    Raises
    ------
    TypeError, ValueError
        If there is nothing that a curve can be drawn of, or an argument does not apply; the message says what can be
        done.

    Notes
    -----
    Up to 5000 rows the page computes every weight itself, and agrees with the estimators: weights to 1e-12, values to
    1e-10. With more rows of one numeric column it shows binned sums and how far they are off, of several columns it is
    slow; of more than 100 000 rows it has a random sample, and says so.
    Windows are those of the bandwidths, or reach to the nearest rows (``window=Nearest(k)``, of one numeric column);
    `Floor`, of the estimators, widens none here.

    Examples
    --------
    >>> from kernpool import explore
    >>> explore()
    Explorer(NadarayaWatsonRegressor, 50 rows, 'make_sine_power')
    >>> explore([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0], bandwidth=0.5, title="three rows").subject.model.bandwidth_
    array([0.5])
    """
    if isinstance(data, str):
        _refuse_more("a generator makes its rows", y=y, truth=truth, load=load)
        subject = subject_of_generator(data, seed or 0, title, _estimator(degree or 0, parameters), target or "y")
        return Explorer(subject.start_at(column, query), language)
    _refuse_more("only for a generator, such as data='make_sine_power'", seed=seed)
    if isinstance(data, RegressionSample):
        _refuse_more("a RegressionSample has its own y and truth", y=y, truth=truth)
        data, y, truth = data.x_train[:, None], data.y_train, (data.x_test, data.y_truth)
    elif y is None and (isinstance(data, np.ndarray | list) or hasattr(data, "columns")):
        raise ValueError("y must be given with rows X, got None: use explore(X, y)")
    if y is not None:
        name = getattr(y, "name", None)
        target = target or (str(name) if name is not None else None)
        data = _fitted(data, y, degree, parameters)
    elif parameters or degree is not None:
        given = [*parameters, *(["degree"] if degree is not None else [])]
        raise TypeError(
            f"{', '.join(given)}: a fitted model has its parameters already; give the model alone, or rows X and y"
        )
    subject = subject_of_model(data, truth=truth, target=target or "y", title=title, load=load)
    return Explorer(subject.start_at(column, query), language)


def _refuse_more(why: str, **given: Any) -> None:
    more = [name for name, value in given.items() if value is not None]
    if more:
        raise TypeError(f"{', '.join(more)}: {why}; leave out {', '.join(more)}")


def _fitted(X: Any, y: ArrayLike, degree: int | None, parameters: dict[str, Any]) -> Any:
    """Return a classifier fitted to X and y if y has labels (text, categories or booleans), else a regressor."""
    refuse_other_labels(X=X, y=y)
    given = np.asarray(y)
    if given.dtype == object and all(isinstance(one, Real) and not isinstance(one, bool) for one in given.flat):
        given = y = given.astype(np.float64)  # numbers that a table holds as objects are no labels
    regressor = _estimator(degree, parameters, labels=given.dtype.kind not in "iufc")
    return regressor.fit(X, y)


def _estimator(degree: int | None, parameters: dict[str, Any], *, labels: bool = False) -> Any:
    if degree not in (None, 0, 1) or (labels and degree):
        raise ValueError(f"degree must be 0 or 1, and 0 for labels y, got {abbreviate(degree)}; use degree=0")
    regressor = NadarayaWatsonRegressor if degree == 0 else LocalLinearRegressor
    kind: Any = NadarayaWatsonClassifier if labels else regressor
    return kind(**parameters)
