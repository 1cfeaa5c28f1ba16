"""The explorer as a notebook widget (anywidget), with bandwidth, query and other settings as traits.

The traits are two-way: setting one moves the page, and moving the page sets them.
"""

from typing import Any

from kernpool.execution.error_messages import abbreviate
from kernpool.explorer.explorer_model import ExplorerModel, axes_of, middle_of, payload_of, widget_module
from kernpool.explorer.server import RequestError, answer, model_at, query_of, thinned

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        'the explorer in a notebook needs anywidget: pip install "kernpool[widget]"; without it, '
        "explore(...).to_html(path) writes a page"
    ) from error

SETTINGS = ("kernel", "bandwidth", "composition", "degree", "smoothing", "widths", "neighbors")


class ExplorerWidget(anywidget.AnyWidget):
    """Notebook widget of the explorer, with the settings and the query as traits (synchronised with the page).

    Attributes
    ----------
    kernel, composition : str
        As in `kernpool.pool`.
    bandwidth : list of float
        One per numeric column, positive.
    degree : int
        0 or 1.
    smoothing : list of float
        One per categorical column.
    widths : {"fixed", "nearest"}
        Whether windows reach to the nearest rows, of models of one numeric column.
    neighbors : int or None
        To how many; set it before `widths`.
    column : int
        Which numeric column the curve runs along.
    query : list of float
        The query's numeric columns.
    levels : list of int
        The query's category codes.
    sample : int or None
        Which draw of a generator is shown, a number of ``widget.payload["samples"]``; None is the rows of the model.

    Notes
    -----
    All traits go both ways: set one and the page follows, move the page and ``widget.observe(function, "bandwidth")``
    is notified. An invalid value is a `TraitError`, and nothing changes.
    """

    _esm = widget_module()
    payload = traitlets.Dict().tag(sync=True)
    kernel = traitlets.Unicode().tag(sync=True)
    bandwidth = traitlets.List(traitlets.Float()).tag(sync=True)
    composition = traitlets.Unicode().tag(sync=True)
    degree = traitlets.Int(min=0, max=1).tag(sync=True)
    smoothing = traitlets.List(traitlets.Float()).tag(sync=True)
    widths = traitlets.Unicode().tag(sync=True)
    neighbors = traitlets.Int(None, allow_none=True).tag(sync=True)
    column = traitlets.Int(0, min=0).tag(sync=True)
    query = traitlets.List(traitlets.Float()).tag(sync=True)
    levels = traitlets.List(traitlets.Int()).tag(sync=True)
    sample = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, subject: ExplorerModel, payload: dict[str, Any]) -> None:
        self._subject = subject
        start, first = payload["settings"], payload["query"]
        numeric, codes = middle_of(subject.model) if first is None else (first["numeric"], first["codes"])
        super().__init__(
            payload=payload,
            column=payload["column"],
            query=numeric,
            levels=codes,
            **{name: start[name] for name in SETTINGS},
        )
        self.on_msg(self._hear)

    def settings(self) -> dict[str, Any]:
        """Return the settings that the widget shows, such as kernel and bandwidth, as a dictionary for `model_at`."""
        return {name: getattr(self, name) for name in SETTINGS} | {"ridge": self.payload["settings"]["ridge"]}

    @traitlets.validate(*SETTINGS)
    def _check_setting(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        known = self.payload["kernels"]
        if name == "kernel" and value not in known:
            raise traitlets.TraitError(f"kernel must be one of {', '.join(known)}, got {abbreviate(value)}")
        try:
            model_at(self._subject.model, self.settings() | {name: value})
        except RequestError as error:
            raise traitlets.TraitError(str(error)) from None
        return value

    @traitlets.validate("query", "levels")
    def _check_query(self, proposal: Any) -> Any:
        place = {"query": self.query, "levels": self.levels} | {proposal["trait"].name: proposal["value"]}
        try:
            query_of(self._subject.model, place["query"], place["levels"])
        except RequestError as error:
            raise traitlets.TraitError(str(error)) from None
        return proposal["value"]

    @traitlets.validate("column", "sample")
    def _check_number(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        known = axes_of(self._subject.model) if name == "column" else [None, *range(len(self._subject.samples))]
        if value not in known:
            raise traitlets.TraitError(f"{name} must be one of {', '.join(map(str, known))}, got {value}")
        return value

    def _hear(self, _: Any, message: Any, __: Any) -> None:
        """Send the page the result of a computation that it requests, or the message of the error."""
        try:
            self.send({"id": message["id"], "answer": answer(self._subject, message["request"])})
        except RequestError as error:
            self.send({"id": message["id"], "error": str(error)})
        except Exception as error:  # the page waits for it
            self.send({"id": message["id"], "error": f"{type(error).__name__}: {error}"})


def make_widget(subject: ExplorerModel, language: str | None) -> ExplorerWidget:
    """Create the notebook widget of an explorer model; if there are many rows, send only those that it draws."""
    kept = thinned(subject.rows)
    return ExplorerWidget(subject, payload_of(subject, language=language, kept=kept))
