"""The explorer in a notebook: the same module as an anywidget, whose traits follow the page and lead it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernpool.pages.explorer.engine import RequestError, answer, thinned
from kernpool.pages.explorer.packing import widget_module
from kernpool.pages.explorer.payload import payload_of
from kernpool.pages.explorer.subject import Subject

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError(
        'the explorer in a notebook needs anywidget: pip install "kernpool[widget]"; without it, '
        "explore(...).to_html(path) writes a page"
    ) from error

SETTINGS = ("kernel", "bandwidth", "composition", "degree", "smoothing")


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer as a widget.

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
    column : int
        Which numeric column the curve runs along.
    query : list of float
        The query's numeric columns.
    levels : list of int
        The query's level numbers.

    Notes
    -----
    All traits go both ways: set one and the page follows, move the page and ``widget.observe(function, "bandwidth")``
    hears of it.
    """

    payload = traitlets.Dict().tag(sync=True)
    kernel = traitlets.Unicode().tag(sync=True)
    bandwidth = traitlets.List(traitlets.Float()).tag(sync=True)
    composition = traitlets.Unicode().tag(sync=True)
    degree = traitlets.Int(min=0, max=1).tag(sync=True)
    smoothing = traitlets.List(traitlets.Float()).tag(sync=True)
    column = traitlets.Int(0, min=0).tag(sync=True)
    query = traitlets.List(traitlets.Float()).tag(sync=True)
    levels = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, subject: Subject, payload: dict[str, Any]) -> None:
        self._subject = subject
        self._esm = widget_module(payload["kernels"])
        model, start = subject.model, payload["settings"]
        first = payload["query"] or {
            "numeric": np.median(np.asarray(model.key_, dtype=np.float64), axis=0).tolist(),
            "codes": [int(np.bincount(codes).argmax()) for codes in np.asarray(model.key_code_).T],
        }
        super().__init__(
            payload=payload,
            column=payload["column"],
            query=first["numeric"],
            levels=first["codes"],
            **{name: start[name] for name in SETTINGS},
        )
        self.on_msg(self._hear)

    def settings(self) -> dict[str, Any]:
        """Return what the page shows, as `model_at` takes it."""
        return {name: getattr(self, name) for name in SETTINGS} | {"ridge": self.payload["settings"]["ridge"]}

    @traitlets.validate("bandwidth")
    def _check_bandwidth(self, proposal: Any) -> Any:
        columns = self._subject.model.key_.shape[1]
        given = proposal["value"]
        if len(given) != columns or not all(np.isfinite(h) and h > 0 for h in given):
            raise traitlets.TraitError(f"bandwidth must be {columns} positive numbers, got {given}")
        return given

    @traitlets.validate("kernel")
    def _check_kernel(self, proposal: Any) -> Any:
        if proposal["value"] not in self.payload["kernels"]:
            raise traitlets.TraitError(
                f"kernel must be one of {', '.join(self.payload['kernels'])}, got {proposal['value']!r}"
            )
        return proposal["value"]

    def _hear(self, _: Any, message: Any, __: Any) -> None:
        """Answer a question of the page; a question that is none gets its reason."""
        try:
            self.send({"id": message["id"], "answer": answer(self._subject, message["request"])})
        except RequestError as error:
            self.send({"id": message["id"], "error": str(error)})


def make_widget(subject: Subject, language: str | None) -> ExplorerWidget:
    """Return the widget of a subject; of more rows than a page sums, those that it draws."""
    kept = thinned(subject.rows)
    return ExplorerWidget(subject, payload_of(subject, language=language, kept=kept))
