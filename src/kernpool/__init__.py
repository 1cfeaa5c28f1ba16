"""kernpool: attention pooling by similarity, that is, Nadaraya-Watson kernel regression.

`pool` is the whole idea in one function; the estimators find the bandwidth from data. Importing the package loads
nothing: each name loads its subpackage when it is first used, and `pool` loads NumPy and little else. So the command
line answers ``--help`` at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernpool._version import __version__ as __version__

if TYPE_CHECKING:
    from kernpool import datasets
    from kernpool.bandwidth import RepeatedRowsWarning
    from kernpool.conformal import PredictionSet
    from kernpool.core import EmptyWindowWarning, PoolState, Problem, RankDeficiencyWarning, empty_state, merge
    from kernpool.data import SuspectColumnWarning, open_chunks
    from kernpool.displays import (
        AttentionDisplay,
        BandwidthPathDisplay,
        CoverageDisplay,
        KernelCurveDisplay,
        KernelDisplay,
        PartialDisplay,
        QuantileFanDisplay,
        ResidualDisplay,
        smooth,
    )
    from kernpool.distribution import pool_cdf, pool_quantile
    from kernpool.estimators import (
        ClassPrediction,
        ConditionalDistribution,
        KernelStackingClassifier,
        KernelStackingRegressor,
        LocalLikelihoodRegressor,
        LocalLinearRegressor,
        LocalLogisticClassifier,
        LocalPolynomialRegressor,
        NadarayaWatsonClassifier,
        NadarayaWatsonRegressor,
        Prediction,
        distribution_bandwidth,
        row_diagnostics,
    )
    from kernpool.estimators.persistence import load_model, save_model
    from kernpool.execution.warnings import SerialCorrelationWarning
    from kernpool.explorer.explore import Explorer, explore
    from kernpool.inference import (
        Explanation,
        ExtrapolationWarning,
        InferenceWarning,
        Interval,
        Residuals,
        Summary,
        TestResult,
        specification_test,
    )
    from kernpool.kernels import Kernel, convert_bandwidth, get_kernel, kernel_names, make_kernel, register_kernel
    from kernpool.pooling import Floor, Nearest, Plan, choose, pool_state, pooling_weights
    from kernpool.pooling.lowess import lowess
    from kernpool.pooling.pool import pool

__all__ = [
    "AttentionDisplay",
    "BandwidthPathDisplay",
    "ClassPrediction",
    "CoefficientDisplay",
    "ConditionalDistribution",
    "CoverageDisplay",
    "EmptyWindowWarning",
    "Explanation",
    "Explorer",
    "ExtrapolationWarning",
    "Floor",
    "InferenceWarning",
    "Interval",
    "Kernel",
    "KernelCurveDisplay",
    "KernelDisplay",
    "KernelStackingClassifier",
    "KernelStackingRegressor",
    "LocalLikelihoodRegressor",
    "LocalLinearRegressor",
    "LocalLogisticClassifier",
    "LocalPolynomialRegressor",
    "NadarayaWatsonClassifier",
    "NadarayaWatsonRegressor",
    "Nearest",
    "PartialDisplay",
    "PartiallyLinearRegressor",
    "Plan",
    "PoolState",
    "Prediction",
    "PredictionSet",
    "Problem",
    "QuantileFanDisplay",
    "RankDeficiencyWarning",
    "RepeatedRowsWarning",
    "ResidualDisplay",
    "Residuals",
    "SerialCorrelationWarning",
    "Summary",
    "SuspectColumnWarning",
    "TestResult",
    "VaryingCoefficientRegressor",
    "choose",
    "convert_bandwidth",
    "datasets",
    "distribution_bandwidth",
    "empty_state",
    "explore",
    "get_kernel",
    "kernel_names",
    "load_model",
    "lowess",
    "make_kernel",
    "merge",
    "open_chunks",
    "pool",
    "pool_cdf",
    "pool_quantile",
    "pool_state",
    "pooling_weights",
    "register_kernel",
    "row_diagnostics",
    "save_model",
    "smooth",
    "specification_test",
]

_LAZY = {
    "EmptyWindowWarning": "kernpool.core",
    "RepeatedRowsWarning": "kernpool.bandwidth",
    "Kernel": "kernpool.kernels",
    "Floor": "kernpool.pooling",
    "Nearest": "kernpool.pooling",
    "Plan": "kernpool.pooling",
    "PoolState": "kernpool.core",
    "Problem": "kernpool.core",
    "RankDeficiencyWarning": "kernpool.core",
    "SerialCorrelationWarning": "kernpool.execution.warnings",
    "SuspectColumnWarning": "kernpool.data",
    "choose": "kernpool.pooling",
    "lowess": "kernpool.pooling.lowess",
    "convert_bandwidth": "kernpool.kernels",
    "empty_state": "kernpool.core",
    "get_kernel": "kernpool.kernels",
    "kernel_names": "kernpool.kernels",
    "make_kernel": "kernpool.kernels",
    "merge": "kernpool.core",
    "open_chunks": "kernpool.data",
    "pool": "kernpool.pooling",
    "pool_state": "kernpool.pooling",
    "pooling_weights": "kernpool.pooling",
    "register_kernel": "kernpool.kernels",
    "AttentionDisplay": "kernpool.displays",
    "BandwidthPathDisplay": "kernpool.displays",
    "ClassPrediction": "kernpool.estimators",
    "ConditionalDistribution": "kernpool.estimators",
    "CoefficientDisplay": "kernpool.displays",
    "CoverageDisplay": "kernpool.displays",
    "Explorer": "kernpool.explorer",
    "ExtrapolationWarning": "kernpool.inference",
    "InferenceWarning": "kernpool.inference",
    "Interval": "kernpool.inference",
    "KernelCurveDisplay": "kernpool.displays",
    "KernelDisplay": "kernpool.displays",
    "PartialDisplay": "kernpool.displays",
    "QuantileFanDisplay": "kernpool.displays",
    "ResidualDisplay": "kernpool.displays",
    "KernelStackingClassifier": "kernpool.estimators",
    "KernelStackingRegressor": "kernpool.estimators",
    "LocalLikelihoodRegressor": "kernpool.estimators",
    "LocalLinearRegressor": "kernpool.estimators",
    "LocalLogisticClassifier": "kernpool.estimators",
    "LocalPolynomialRegressor": "kernpool.estimators",
    "NadarayaWatsonClassifier": "kernpool.estimators",
    "NadarayaWatsonRegressor": "kernpool.estimators",
    "PartiallyLinearRegressor": "kernpool.estimators",
    "Prediction": "kernpool.estimators",
    "PredictionSet": "kernpool.conformal",
    "Residuals": "kernpool.inference",
    "Summary": "kernpool.inference",
    "VaryingCoefficientRegressor": "kernpool.estimators",
    "TestResult": "kernpool.inference",
    "datasets": "kernpool.datasets",
    "distribution_bandwidth": "kernpool.estimators",
    "explore": "kernpool.explorer",
    "load_model": "kernpool.estimators.persistence",
    "pool_cdf": "kernpool.distribution",
    "pool_quantile": "kernpool.distribution",
    "save_model": "kernpool.estimators.persistence",
    "smooth": "kernpool.displays",
    "specification_test": "kernpool.inference",
    "Explanation": "kernpool.inference",
    "row_diagnostics": "kernpool.estimators",
}


_ROOMS = (
    "algorithms",
    "core",
    "data",
    "execution",
    "kernels",
    "pooling",
)  # which are there without being imported first


_IN_TORCH = [
    "AdditiveSimilarity", "AttentionPooling", "BilinearSimilarity", "DotProductSimilarity", "GaussianSimilarity",
    "KernelSimilarity", "MultiheadPooling", "Request", "Route", "attention_pool", "choose_route",
    "masked_softmax",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"kernpool.{name}")
    if name not in _LAZY:
        where = "; it is in kernpool.torch" if name in _IN_TORCH else ""
        raise AttributeError(f"module 'kernpool' has no attribute {name!r}{where}")
    module = import_module(_LAZY[name])
    found = module if _LAZY[name] == f"kernpool.{name}" else getattr(module, name)
    globals()[name] = found  # the next time it is simply there
    return found


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__, *_ROOMS})
