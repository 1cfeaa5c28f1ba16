"""API pages: one for everything that the package and its subpackages export, and links from names in docstrings.

What is exported is read from `__all__`, so nothing is forgotten: a new name of `kernpool` that is in no group of
`GROUPS` stops the build. Everything has one page, under the shortest name that it has.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_origin

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.roles import XRefRole
from sphinx.util.nodes import make_refnode

API = Path(__file__).resolve().parents[1] / "api"
GROUPS = {
    "Pooling": "pool lowess pooling_weights pool_quantile pool_cdf pool_state merge empty_state PoolState "
    "Nearest Floor",
    "Estimators": "NadarayaWatsonRegressor LocalLinearRegressor LocalPolynomialRegressor NadarayaWatsonClassifier "
    "KernelStackingRegressor KernelStackingClassifier PartiallyLinearRegressor VaryingCoefficientRegressor "
    "LocalLikelihoodRegressor LocalLogisticClassifier save_model load_model",
    "Confidence intervals": "Prediction ClassPrediction Interval Residuals Summary InferenceWarning",
    "Explanations": "Explanation row_diagnostics",
    "Hypothesis tests": "TestResult specification_test",
    "Distributions, prediction intervals and sets": "ConditionalDistribution PredictionSet distribution_bandwidth",
    "Large data": "open_chunks",
    "Plots and explorer": "explore Explorer KernelCurveDisplay PartialDisplay KernelDisplay AttentionDisplay "
    "BandwidthPathDisplay ResidualDisplay QuantileFanDisplay "
    "CoverageDisplay CoefficientDisplay smooth",
    "Kernels and bandwidths": "Kernel kernel_names get_kernel make_kernel register_kernel convert_bandwidth",
    "Choice of the algorithm, warnings": "choose Plan Problem EmptyWindowWarning RankDeficiencyWarning "
    "SuspectColumnWarning RepeatedRowsWarning SerialCorrelationWarning ExtrapolationWarning",
}
# Subpackages with names of their own, from those that callers meet to those that hold the parts.
SUBPACKAGES = (
    "torch", "dask", "datasets", "explorer", "pooling", "kernels", "bandwidth", "smoother", "likelihood", "inference",
    "distribution", "conformal", "estimators", "displays", "core", "algorithms", "data", "execution", "cli",
)  # fmt: skip
FOREIGN = re.compile(r":(?:ref|func|class|meth|term):`([^<`]*?)\s*(?:<[^`]*>)?`")  # roles in their docstrings
ROUTING = "_request"  # scikit-learn's metadata routing: methods that every estimator gets, without a line of ours
FOREIGN_METHODS = {"get_metadata_routing", "get_params", "set_params"}  # of every estimator of scikit-learn


def grouped() -> dict[str, list[str]]:
    """Return the names of `kernpool`, group by group."""
    import kernpool

    exported = set(kernpool.__all__) - {"datasets"}
    groups = {title: names.split() for title, names in GROUPS.items()}
    missing = exported - {name for names in groups.values() for name in names}
    unknown = {name for names in groups.values() for name in names} - exported
    if unknown:
        raise ExtensionError(f"docs/_ext/site_api.py has {sorted(unknown)}, which kernpool does not export")
    if missing:
        raise ExtensionError(f"kernpool exports {sorted(missing)}: say in docs/_ext/site_api.py in which group")
    return groups


def _table(names: list[str], *, with_pages: bool = True) -> str:
    """Return a table of names with a line each; their pages are made for one table of each name."""
    listed = "\n".join(f"   {name}" for name in names)
    return ".. autosummary::\n" + "   :toctree: items\n" * with_pages + f"   :nosignatures:\n\n{listed}\n\n"


def _groups(*, with_pages: bool) -> str:
    tables = (
        f"{title}\n{'-' * len(title)}\n\n{_table(names, with_pages=with_pages)}" for title, names in grouped().items()
    )
    return ".. currentmodule:: kernpool\n\n" + "".join(tables)


def front_page() -> str:
    """Return the page of `kernpool`."""
    return "kernpool\n========\n\n.. automodule:: kernpool\n   :no-members:\n\n" + _groups(with_pages=True)


def index_page() -> str:
    """Return the index of the reference: public names group by group, then the subpackages, a line each."""
    text = "Reference\n=========\n\nEverything is in `kernpool` itself, but for the layers of :doc:`kernpool.torch "
    text += "<kernpool.torch>` and parts for those who build on them.\n\n" + _groups(with_pages=False)
    text += "Subpackages\n-----------\n\n.. list-table::\n   :widths: 25 75\n\n"
    for subpackage in SUBPACKAGES:
        first = (import_module(f"kernpool.{subpackage}").__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ")
        text += f"   * - :doc:`kernpool.{subpackage} <kernpool.{subpackage}>`\n     - {first}\n"
    hidden = "\n".join(f"   {name}" for name in ("kernpool", *(f"kernpool.{each}" for each in SUBPACKAGES)))
    return f"{text}\n.. toctree::\n   :hidden:\n\n{hidden}\n"


def subpackage_page(subpackage: str) -> str:
    """Return the page of a subpackage: what it is, what it exports, and where the page of that is."""
    import kernpool

    module, name = import_module(f"kernpool.{subpackage}"), f"kernpool.{subpackage}"
    exported = getattr(module, "__all__", None) or [
        name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__
    ]
    exported = [name for name in exported if not name.startswith("_")]
    above = [each for each in exported if getattr(kernpool, each, None) is getattr(module, each)]
    plain = [each for each in exported if not _has_page(getattr(module, each)) and each not in above]
    here = sorted(set(exported) - set(above) - set(plain))
    text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :no-members:\n\n"
    text += f".. currentmodule:: {name}\n\n"
    if here:
        text += _table(here)
    if plain:
        text += "Constants\n---------\n\n"
        text += "".join(f".. py:data:: {each}\n\n   {_what(getattr(module, each))}\n\n" for each in sorted(plain))
    if above:
        links = ", ".join(f":obj:`~kernpool.{each}`" for each in sorted(above))
        text += f"Also in `kernpool` itself: {links}.\n"
    return text


def _has_page(thing: Any) -> bool:
    """Return whether something is a class or function, and no constant and no name of a type."""
    return callable(thing) and get_origin(thing) is None


def _what(value: Any) -> str:
    """Describe a constant: its kind, and what it holds if that is few names."""
    if get_origin(value) is not None:
        return f"The type ``{value}``."
    kind = type(value).__name__
    if isinstance(value, dict | list | tuple | set | frozenset):
        names = [each for each in value if isinstance(each, str) and each]  # of an empty one nothing can be shown
        held = ", ".join(f"``{each}``" for each in names)
        return f"A {kind} of {len(value)}" + (f": {held}." if names and len(names) == len(value) else ".")
    return f"Of type ``{kind}``."


def write_pages(_app: Any = None, _config: Any = None) -> None:
    """Write what is not there yet or has changed, before autosummary looks for it; remove what is of no subpackage."""
    pages = {"index": index_page(), "kernpool": front_page()} | {
        f"kernpool.{subpackage}": subpackage_page(subpackage) for subpackage in SUBPACKAGES
    }
    API.mkdir(exist_ok=True)
    for path in API.glob("kernpool*.rst"):
        if path.stem not in pages:
            path.unlink()  # of an earlier layout, which would fail the build
    for name, text in pages.items():
        path = API / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def skip(_app: Any, _what: str, name: str, thing: Any, skipped: bool, _options: Any) -> bool | None:
    """Leave out what others put into classes: metadata routing, parameters as dictionaries, fields of named tuples."""
    if name.endswith(ROUTING) or name in FOREIGN_METHODS:
        return True
    if (inspect.getdoc(thing) or "").startswith("Alias for field number"):
        return True
    return skipped or None


def without_foreign_links(_app: Any, _what: str, _name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Print roles in docstrings of scikit-learn as code: what they link to is not on this site."""
    if (getattr(thing, "__module__", None) or "").startswith("sklearn."):
        lines[:] = [FOREIGN.sub(lambda found: f"``{found[1].lstrip('~')}``", line) for line in lines]


AS_IN = re.compile(r" +As in `(NadarayaWatsonRegressor)`\.")


def written_out(_app: Any, what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Replace "As in `X`." below parameters and attributes of a class by what the docstring of X says of them."""
    found = [i for i, line in enumerate(lines) if what == "class" and AS_IN.fullmatch(line)]
    for i in reversed(found):
        names, _, kind = lines[i - 1].partition(" : ")
        lines[i - 1 : i + 1] = [
            line
            for name in names.split(", ")
            for of, text in [_entries(AS_IN.fullmatch(lines[i])[1])[name]]  # type: ignore[index]  # it has matched
            for line in (f"{name} : {kind or of}", *(f"    {each}" for each in text))
        ]


def list_methods(_app: Any, what: str, _name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """Add a table of the methods of a class, a line each, below its parameters."""
    if what != "class":
        return
    ours = [
        method
        for method in sorted({each for base in thing.__mro__ for each in vars(base)})
        if not method.startswith("_")
        and not method.endswith(ROUTING)
        and inspect.isfunction(
            inspect.unwrap(getattr(getattr(thing, method, None), "__func__", getattr(thing, method, None)))
        )
        and (getattr(getattr(thing, method), "__module__", None) or "").startswith("kernpool")
    ]
    if len(ours) > 1:
        rows = [f"   ~{thing.__name__}.{method}" for method in ours]
        lines += ["", ".. rubric:: Methods", "", ".. autosummary::", "   :nosignatures:", "", *rows, ""]


@cache
def _entries(class_name: str) -> dict[str, tuple[str, list[str]]]:
    """Return the kind and description of each parameter and attribute of a public class."""
    from numpydoc.docscrape import NumpyDocString

    import kernpool

    doc = NumpyDocString(inspect.getdoc(getattr(kernpool, class_name)) or "")
    return {
        name: (entry.type, entry.desc)
        for entry in [*doc["Parameters"], *doc["Attributes"]]
        for name in entry.name.split(", ")
    }


class Known(XRefRole):
    """The default role: a link if the name has a page, and code if not."""

    def process_link(
        self,
        env: Any,
        refnode: nodes.Element,
        has_explicit_title: bool,  # noqa: ARG002  # as all others are called
        title: str,
        target: str,
    ) -> tuple[str, str]:
        """Remember where the name stands, for methods and neighbours."""
        refnode["py:module"], refnode["py:class"] = env.ref_context.get("py:module"), env.ref_context.get("py:class")
        refnode["known"] = True
        return title, target.removesuffix("()")


def resolve(app: Any, env: Any, node: nodes.Element, content: nodes.Element) -> nodes.Element | None:
    """Find what a name means: as written, in the package, or nothing with a page."""
    if not node.get("known"):
        return None
    objects, target = env.get_domain("py").objects, node["reftarget"]
    scopes = [f"{node['py:module']}.{node['py:class']}.", f"{node['py:module']}.", "kernpool.", ""]
    for name in (scope + target for scope in scopes):
        if name in objects and objects[name].objtype != "module":
            found = objects[name]
            return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, content, name)
    return content


def setup(app: Any) -> dict[str, Any]:
    """Connect; `config-inited` comes before autosummary reads the pages."""
    app.add_role("known", Known(innernodeclass=nodes.literal))
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", without_foreign_links)
    app.connect("autodoc-process-docstring", written_out, priority=100)  # before numpydoc reads the sections
    app.connect("autodoc-process-docstring", list_methods, priority=900)  # after it has written them
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
