"""Plot of an explanation: steps from a mean output to a prediction, by training rows or by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.displays import drawing
from kernpool.displays.inputs import target_name
from kernpool.execution.error_messages import abbreviate, check_choice, explain_calls
from kernpool.inference.explanation import BEFORE_PRIORS, FEW_ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

BY = ("rows", "columns")
IN_MEMORY = "; use NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier, fitted to rows in memory"


@explain_calls
@dataclass(eq=False, repr=False, kw_only=True)
class ExplanationDisplay(drawing.Display):
    """One prediction as a sum: bars from a mean output to the prediction, of training rows or of columns.

    Parameters
    ----------
    names : sequence of str
        What each bar is.
    step : ndarray of shape (bars,)
        Their lengths: contributions, or terms. Negative ones go to the left.
    start : float
        Where the first bar starts.
    start_name, end_name : str
        What that is, and what the last bar ends at.
    effective_rows : float or None
        Effective number of rows that the prediction averages, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib BarContainer
        One bar per name, from the top.
    ends_ : list of matplotlib Line2D
        Lines at the mean output and at the prediction.

    Examples
    --------
    >>> from kernpool import ExplanationDisplay, NadarayaWatsonRegressor
    >>> from kernpool.datasets import make_sine_power
    >>> sample = make_sine_power(random_state=0)
    >>> model = NadarayaWatsonRegressor().fit(sample.x_train[:, None], sample.y_train)
    >>> display = ExplanationDisplay.from_estimator(model, [[2.5]])  # doctest: +SKIP
    """

    names: Sequence[str]
    step: Array
    start: float
    start_name: str = "average"
    end_name: str = "prediction"
    effective_rows: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        query: int = 0,
        by: str = "rows",
        k: int | None = None,
        output: Any = None,
        labels: ArrayLike | None = None,
        target: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> ExplanationDisplay:
        """Explain one prediction of a fitted estimator, and draw it.

        Parameters
        ----------
        estimator : NadarayaWatsonRegressor, LocalLinearRegressor or NadarayaWatsonClassifier
            Fitted to rows in memory; for columns a LocalLinearRegressor.
        X : array_like or data frame of shape (m, d)
            Queries.
        query : int, default=0
            Which of them.
        by : {"rows", "columns"}, default="rows"
            Contributions of training rows, from the mean output, as of `Prediction.explain`; or terms of columns, from
            the mean of the rows around the query, as of `Prediction.additive_terms`.
        k : int, optional
            Training rows with a bar of their own, by default 8; only with ``by="rows"``.
        output : int or class label, optional
            Which output, by default the first; which class, by default the predicted one. The bars end at its pooled
            label, before priors and recalibration.
        labels : array_like of shape (n,), optional
            Names of the training rows, by default their numbers; only with ``by="rows"``.
        target : str, optional
            What the output is called; by default the name of the Series y of the fit, or "y".
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **style
            `bar_kwargs` of `plot`.

        Returns
        -------
        ExplanationDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If `query`, `by`, `k` or `output` are invalid, `k` or `labels` are given with ``by="columns"``, or the
            window of the query is empty.
        TypeError
            If the estimator has no explanations, or was fitted to chunks; by columns, if it is a weighted mean.
        """
        check_choice("by", by, BY)
        for argument, given in (("k", k), ("labels", labels)):
            if by == "columns" and given is not None:
                raise ValueError(
                    f"{argument} is for the bars of training rows, got {abbreviate(given)} with by='columns'; leave "
                    f"{argument} out, or use by='rows'"
                )
        prediction = drawing.method_of(estimator, "get_prediction", f" to explain{IN_MEMORY}")(X)
        if not 0 <= query < len(prediction):
            raise ValueError(f"query must lie in [0, {len(prediction) - 1}], got {query}")
        name = target_name(estimator, None, target)
        if by == "columns":
            terms = drawing.method_of(prediction, "additive_terms", "; use by='rows'")()
            at = _output(output, terms.prediction.shape[1:])
            value, center = terms.value[query], terms.center[query]
            names = [
                f"{column}: {here:.4g}" + (f" (rows around: {there:.4g})" if np.isfinite(there) else "")
                for column, here, there in zip(terms.columns, value, center, strict=True)
            ]
            start, step = terms.local_mean[(query, *at)], terms.term[(query, slice(None), *at)]
            found = cls(names=names, step=step, start=float(start), start_name="mean of rows around", x_label=name)
        else:
            explained = prediction.explain(8 if k is None else k, labels=labels)
            classes = explained.classes
            if output is None and explained.predicted is not None:
                output = explained.predicted[query]
            at = _output(output, explained.prediction.shape[1:], classes)
            rows = explained.row[query] >= 0
            shown = explained.output[query] if classes is None else classes[explained.output[query].argmax(axis=-1)]
            shown = shown[(slice(None), *at)] if classes is None else shown
            names = [
                f"row {row}: {cell if classes is not None else format(cell, '.4g')}, weight {weight:.1%}"
                for row, cell, weight in zip(
                    explained.label[query][rows], shown[rows], explained.weight[query][rows], strict=True
                )
            ]
            others = explained.other_contribution[(query, *at)]
            step = np.append(explained.contribution[(query, slice(None), *at)][rows], others)
            found = cls(
                names=[*names, f"other rows, weight {explained.other_weight[query]:.1%}"],
                step=step,
                start=float(explained.average[at] if at else explained.average),
                effective_rows=float(explained.effective_rows[query]),
                end_name="prediction" if classes is None else "pooled label",
                x_label=name if classes is None else f"pooled label of {classes[at[0]]}, {BEFORE_PRIORS}",
            )
        if not np.isfinite(found.step).all():
            raise ValueError(f"query {query} has no training row in its window, so that nothing explains it")
        return found.plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, bar_kwargs: dict[str, Any] | None = None) -> ExplanationDisplay:
        """Draw the bars from the top, each from where the one before ends.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        bar_kwargs : dict, optional
            Passed to matplotlib for the bars.

        Returns
        -------
        ExplanationDisplay
            Itself, with `ax_`, `figure_`, `bars_` and `ends_`.
        """
        step = np.asarray(self.step, dtype=np.float64)
        count, ends = len(step), self.start + np.cumsum(step)
        ax = self._start(ax, 7.2, 1.3 + 0.36 * (count + 1))
        starts, place = np.append(self.start, ends[:-1]), np.arange(count)
        color = [drawing.RED if length >= 0 else drawing.BLUE for length in step]
        style: dict[str, Any] = {"color": color, "height": 0.62} | (bar_kwargs or {})
        self.bars_ = ax.barh(place, step, left=starts, **style)
        ax.vlines(ends[:-1], place[:-1] + 0.31, place[1:] - 0.31, color=drawing.GRAY, linewidth=0.9)
        for i, length in enumerate(step):
            right = max(starts[i], ends[i])
            ax.annotate(
                f"{length:+.3g}", (right, i), xytext=(4, 0), textcoords="offset points", va="center", fontsize="small"
            )
        predicted = float(ends[-1]) if count else self.start
        self.ends_ = [
            ax.axvline(self.start, color=drawing.GRAY, linestyle="--", linewidth=1.2, zorder=0,
                       label=f"{self.start_name} {self.start:.4g}"),
            ax.axvline(predicted, color=drawing.BLACK, linewidth=1.2, zorder=0,
                       label=f"{self.end_name} {predicted:.4g}"),
        ]  # fmt: skip
        ax.set_yticks(place, list(self.names), fontsize="small")
        ax.set_ylim(count - 0.4, -0.6)
        ax.use_sticky_edges = False  # room on both sides
        ax.margins(x=0.09)
        rows = self.effective_rows
        few = "" if rows is None or rows >= FEW_ROWS else ", few: large variance"
        title = {} if rows is None else {"title": f"{rows:.3g} effective rows{few}"}
        self._finish(ncols=2, **drawing.ABOVE, **title)
        ax.set_ylabel("")
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self


def _output(output: Any, shape: tuple[int, ...], classes: NDArray[Any] | None = None) -> tuple[int, ...]:
    """Return the index of an output or class along the last axis; an empty tuple if there is no such axis."""
    if classes is not None:
        (found,) = np.nonzero(classes == output)
        if not found.size:
            raise ValueError(f"output must be one of the classes {abbreviate(list(classes))}, got {abbreviate(output)}")
        return (int(found[0]),)
    count = shape[0] if shape else 1
    if output is not None and output not in range(count):
        raise ValueError(f"output must lie in [0, {count - 1}], got {abbreviate(output)}")
    return (int(output or 0),) if shape else ()
