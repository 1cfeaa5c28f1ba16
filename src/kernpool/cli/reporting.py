"""What `kernpool fit` says of a fit: one record, printed as lines for people or as JSON for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernpool.cli.describing import names_of
from kernpool.cli.tables import Training
from kernpool.cli.terminal import say
from kernpool.estimators.fitted import problem_of
from kernpool.pooling.choice import choose

Report = dict[str, Any]


def report_of(model: Any, training: Training, groups: str | None) -> Report:
    """Describe a fit, and how well it predicts rows, or whole clusters, that it has not seen."""
    result, y = model.leave_one_out(), training.target
    plan = choose(problem_of(model, None), model.algorithm, often=True)
    report: Report = {
        "estimator": type(model).__name__,
        "rows": len(y),
        "columns": training.names,
        "kernel": model.kernel,
        **names_of(model, training.names),
    }
    if training.features.dates:
        report["dates"] = training.features.dates
    if groups is not None:
        sizes = np.bincount(model.key_group_)
        report["clusters"] = {
            "column": groups,
            "count": len(sizes),
            "smallest": int(sizes.min()),
            "median": float(np.median(sizes)),
            "largest": int(sizes.max()),
        }
    report["scale"] = model.scale
    if vars(model).get("ridge_"):
        report["ridge"] = float(model.ridge_)
    report["left_out"] = "row" if groups is None else "cluster"
    if training.classes:
        report |= _of_classes(model, result, y)
    else:
        spread = float(((y - y.mean()) ** 2).mean())
        report["loo_error"] = float(result.error)
        report["loo_r2"] = 1 - float(result.error) / spread if spread else None
    report["empty_windows"] = int(result.empty_windows)
    report["algorithm"], report["reason"] = plan.algorithm, plan.reason
    report["notes"] = training.notes
    return report


def _of_classes(model: Any, result: Any, y: Any) -> Report:
    probability = result.probability
    true = np.searchsorted(model.classes_, y)
    said = probability[np.arange(len(y)), true]
    return {
        "classes": model.classes_.tolist(),
        "loo_log_loss": float(-np.log(np.maximum(said, np.finfo(float).tiny)).mean()),
        "loo_wrong": float((probability.argmax(axis=1) != true).mean()),
    }


def say_report(report: Report) -> None:
    """Print a report for people."""
    say(f"rows       {report['rows']}")
    say(f"columns    {', '.join(report['columns'])}")
    if "dates" in report:
        say(f"dates      {', '.join(report['dates'])}, in days since 1970-01-01")
    if "clusters" in report:
        c = report["clusters"]
        say(
            f"clusters   {c['column']}: {c['count']}, of {c['smallest']} to {c['largest']} rows, median {c['median']:g}"
        )
    if "classes" in report:
        say(f"classes    {', '.join(map(str, report['classes']))}")
    say(f"kernel     {report['kernel']}")
    dates = report.get("dates", ()) if report["scale"] == "raw" else ()
    found = ", ".join(f"{name} {h:.6g}{' days' * (name in dates)}" for name, h in report["bandwidth"].items())
    if found:
        say(f"bandwidth  {found}{' (in ranks, from 0 to 1)' if report['scale'] == 'rank' else ''}")
    if "smoothing" in report:
        levels = report["levels"]
        parts = (f"{name} {x:.6g} ({len(levels[name])} levels)" for name, x in report["smoothing"].items())
        say(f"smoothing  {', '.join(parts)}")
    if "ridge" in report:
        say(f"ridge      {report['ridge']:.6g} rows")
    left = "leave-one-out" if report["left_out"] == "row" else "leave-cluster-out"
    if "classes" in report:
        say(f"{left} log loss  {report['loo_log_loss']:.6g}")
        say(f"{left} rows in the wrong class  {report['loo_wrong']:.4%}")
    else:
        say(f"{left} mean squared error  {report['loo_error']:.6g}")
        r2 = report["loo_r2"]
        say("y is constant, so R^2 is undefined" if r2 is None else f"{left} R^2                 {r2:.6g}")
    if report["empty_windows"]:
        others = "rows" if report["left_out"] == "row" else "clusters"
        say(f"empty {left} windows       {report['empty_windows']}, predicted by the mean of the other {others}")
    say(f"algorithm  {report['algorithm']} ({report['reason']})")
