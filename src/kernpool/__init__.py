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

# What each module has; it is loaded when one of its names is first used.
_NAMES = {
    "bandwidth": ["RepeatedRowsWarning"],
    "conformal": ["PredictionSet"],
    "core": ["EmptyWindowWarning", "PoolState", "Problem", "RankDeficiencyWarning", "empty_state", "merge"],
    "data": ["SuspectColumnWarning", "open_chunks"],
    "displays": [
        "AttentionDisplay", "BandwidthPathDisplay", "CoefficientDisplay", "CoverageDisplay", "KernelCurveDisplay",
        "KernelDisplay", "PartialDisplay", "QuantileFanDisplay", "ResidualDisplay", "smooth",
    ],
    "distribution": ["pool_cdf", "pool_quantile"],
    "estimators": [
        "ClassPrediction", "ConditionalDistribution", "KernelStackingClassifier", "KernelStackingRegressor",
        "LocalLikelihoodRegressor", "LocalLinearRegressor", "LocalLogisticClassifier", "LocalPolynomialRegressor",
        "NadarayaWatsonClassifier", "NadarayaWatsonRegressor", "PartiallyLinearRegressor", "Prediction",
        "VaryingCoefficientRegressor", "distribution_bandwidth", "row_diagnostics",
    ],
    "estimators.persistence": ["load_model", "save_model"],
    "execution.warnings": ["SerialCorrelationWarning"],
    "explorer": ["Explorer", "explore"],
    "inference": [
        "Explanation", "ExtrapolationWarning", "InferenceWarning", "Interval", "Residuals", "Summary", "TestResult",
        "specification_test",
    ],
    "kernels": ["Kernel", "convert_bandwidth", "get_kernel", "kernel_names", "make_kernel", "register_kernel"],
    "pooling": ["Floor", "Nearest", "Plan", "choose", "pool", "pool_state", "pooling_weights"],
    "pooling.lowess": ["lowess"],
}  # fmt: skip
_WHERE = {name: f"kernpool.{module}" for module, names in _NAMES.items() for name in names}


_ROOMS = (
    "algorithms",
    "core",
    "data",
    "datasets",
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
    if name not in _WHERE:
        where = "; it is in kernpool.torch" if name in _IN_TORCH else ""
        raise AttributeError(f"module 'kernpool' has no attribute {name!r}{where}")
    globals()[name] = found = getattr(import_module(_WHERE[name]), name)  # the next time it is simply there
    return found


def __dir__() -> list[str]:
    return sorted({name for name in globals() if name.startswith("__")} | {*__all__, *_ROOMS})
