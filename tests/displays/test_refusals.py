"""What cannot be drawn is refused, by a message that names the argument or the remedy."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
from matplotlib import pyplot as plt
from sklearn.linear_model import LinearRegression

from kernpool import (
    AttentionDisplay,
    BandwidthPathDisplay,
    CoverageDisplay,
    KernelCurveDisplay,
    KernelDisplay,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    PartialDisplay,
    QuantileFanDisplay,
    ResidualDisplay,
    open_chunks,
    smooth,
)

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 5, (60, 1)), axis=0)
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=60)
TWO = np.column_stack([X, RNG.normal(size=60)])
FRAME = pd.DataFrame({"size": X[:, 0], "street": np.array(["elm", "oak", "ash"])[np.arange(60) % 3]})
MODEL = LocalLinearRegressor(bandwidth=0.4).fit(X, Y)
OF_TWO = NadarayaWatsonRegressor(bandwidth=0.5).fit(TWO, Y)
OF_FRAME = NadarayaWatsonRegressor(bandwidth=0.5, smoothing=0.3).fit(FRAME, Y)
OF_STREETS = NadarayaWatsonRegressor(bandwidth="loo").fit(FRAME[["street"]], Y)
OUTPUTS = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, np.c_[Y, Y])
CLASSES = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, Y > 0)
CHUNKED = LocalLinearRegressor(bandwidth=0.4).fit(open_chunks([(X, Y)]))
GROUPED = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, Y > 0, groups=np.arange(60) // 3)
OTHER = LinearRegression().fit(X, Y)
SHORT = MODEL.confidence_interval(X[1:])
MASKED = np.ma.array(Y, mask=Y > 0.5)
PAIR = Y - 1, Y + 1
LEVELS = [0.1, 0.9]
REFUSED = {
    KernelCurveDisplay.from_predictions: [
        (([1.0, 2.0], [1.0]), {}, "prediction must have one entry per entry of x, 2, got 1"),
        (([1.0, 2.0], [1.0, 2.0]), {"truth": [1.0]}, "truth must have one entry per entry of x"),
        (([1.0, 2.0], [1.0, 2.0]), {"x_train": [1.0]}, "y_train must have one entry per entry of x_train"),
        ((X[:, 0], MASKED), {}, "is a masked array"),
        ((X[:, 0], Y), {"bands": [SHORT]}, "bands must hold intervals for the 60 points"),
        ((X[:, 0], Y), {"prediction_interval": MODEL.prediction_interval(X[1:])}, r"for the 60 points.*\(59,\)"),
    ],
    KernelCurveDisplay.from_estimator: [
        ((OUTPUTS, X, np.c_[Y, Y]), {}, "one output can be drawn"),
        ((OF_TWO, TWO, Y), {}, "feature must say which column"),
        ((OF_TWO, TWO, Y), {"feature": 2}, "feature must say.*from 0 to 1; got 2"),
        ((OF_TWO, TWO, Y[1:]), {"feature": 0}, "y must have one entry per row of X, 60, got 59"),
        ((OF_TWO, TWO), {"feature": 1}, "X and y go together, got only X"),
        ((OF_FRAME,), {"feature": "street"}, "column 'street' holds categories.*by='street'"),
        ((OF_TWO,), {"by": 0}, "by must name another column .* at most 10 values; 0 has 60"),
        ((OF_FRAME,), {"feature": "size", "by": "size"}, "by must name another column than the drawn one"),
        ((MODEL, X, Y), {"band": "prediction"}, "band must be one of"),
        ((MODEL, X, Y), {"prediction": 90}, "90 percent is"),
        ((MODEL, X, Y), {"prediction": 0.9, "quantity": "derivative"}, "leave prediction out"),
        ((CLASSES, X, Y > 0), {"band": "confidence"}, "no confidence_interval.*use band=None"),
        ((CLASSES, X, Y > 0), {"prediction": 0.9}, "no prediction_interval.*use prediction=None"),
        ((CHUNKED, X, Y), {"band": "simultaneous"}, "not in memory"),
        ((CHUNKED, X, Y), {"prediction": 0.9, "prediction_method": "cv+"}, "use method='adaptive', or 'split'"),
    ],
    QuantileFanDisplay.from_estimator: [
        ((OUTPUTS, X, np.c_[Y, Y]), {}, "one output can be drawn"),
        ((CLASSES, X, Y > 0), {}, "NadarayaWatsonClassifier has no quantile; use"),
    ],
    QuantileFanDisplay: [
        ((), {"x": [0.0, 1.0], "quantile": [[1.0, 2.0]] * 2, "levels": [0.1, 0.1]}, "levels must differ"),
        ((), {"x": [0.0, 1.0], "quantile": [[1.0, 2.0]] * 2, "levels": [0.9, 0.1]}, "in the order of levels"),
        ((), {"x": [0.0], "quantile": [[1.0, 2.0]] * 2, "levels": LEVELS}, r"one column per level, \(1, 2\)"),
    ],
    CoverageDisplay.from_estimator: [
        ((MODEL, X, Y), {}, "give rows that were held out"),
        ((CLASSES, X, Y > 0), {}, "has no prediction_interval"),
        (
            (OF_FRAME, FRAME.assign(size=X[:, 0] + 0.01), Y),
            {"against": "age"},
            r"against must say which column of X.*'street'.*got 'age'",
        ),
    ],
    CoverageDisplay.from_intervals: [
        ((X[:, 0], Y, PAIR), {}, "level must lie between 0 and 1, got None"),
        ((X[:, 0], Y, PAIR), {"level": 90}, "level=0.9"),
        ((X[:, 0], Y, PAIR), {"level": 0.9, "slices": 0}, "slices must be"),
        ((X[:, 0], Y, PAIR[::-1]), {"level": 0.9}, "60 of 60 rows with lower above upper"),
        ((X[:, 0], Y[1:], PAIR), {"level": 0.9}, "one number for each row"),
        ((X[:, 0], Y * np.nan, PAIR), {"level": 0.9}, "y holds nan"),
        ((X[:, 0], Y, (Y * np.nan, Y)), {"level": 0.9}, "0 of 60 rows with lower above upper, and 60 with NaN"),
        ((X[:, 0], Y, 1.96), {"level": 0.9}, "interval must be what"),
    ],
    ResidualDisplay.from_estimator: [
        ((CHUNKED,), {}, "not in memory"),
        ((CLASSES,), {}, "NadarayaWatsonClassifier"),
        ((OUTPUTS,), {}, "output must say which output"),
        ((OUTPUTS,), {"output": 2}, "output must say.*from 0 to 1; got 2"),
        ((OF_FRAME,), {"against": "weight"}, "against must say which column of X.*got 'weight'"),
        ((MODEL,), {"marked": -1}, "marked must be"),
    ],
    PartialDisplay.from_estimator: [
        ((OUTPUTS, X, np.c_[Y, Y]), {}, "one output can be drawn"),
        ((OTHER,), {}, "does not hold its rows; pass X and y"),
        ((LocalLinearRegressor(),), {}, "not fitted yet"),
        ((OTHER, X, Y), {"band": "confidence"}, "no confidence_interval"),
        ((GROUPED,), {"band": "confidence"}, "groups"),
        ((OF_FRAME,), {"features": ["z"]}, "features must say which column of X.*got 'z'"),
        ((OF_FRAME,), {"features": [("size", "street")]}, "column 'street' holds categories.*by='street'"),
        ((OF_TWO,), {"features": [(0, 0)]}, r"pairs of different columns, got \(0, 0\)"),
        ((OF_FRAME,), {"feature_names": ["a"]}, "feature_names must have one entry per column of X, 2, got 1"),
        ((OF_FRAME,), {"kind": "mean"}, "kind must be"),
        ((OF_FRAME,), {"axes": []}, "axes must have one entry per panel, 2, got 0"),
        ((OF_FRAME,), {"grid_resolution": 1}, "grid_resolution must be"),
    ],
    smooth: [
        ((FRAME,), {"x": "siz", "y": "age"}, "x must be 'size' or 'street', got 'siz'; did you mean 'size'"),
        ((FRAME,), {"x": "size", "y": "street", "by": "size"}, "different columns.* got 'size', 'street' and 'size'"),
        ((FRAME.rename(columns={"size": "lower"}),), {"x": "street", "y": "lower"}, "none be called 'lower'"),
        ((FRAME,), {"x": "size", "y": "street", "points": 2.5}, "points must be an integer from 1 on"),
        ((FRAME[:0],), {"x": "size", "y": "street"}, "X is empty"),
    ],
    KernelDisplay.from_kernels: [
        ((["gaussian", "gaussian"],), {}, "each once"),
        ((["gaussian"],), {"names": []}, "names must have one entry per kernel"),
        ((["epanechikov"],), {}, "did you mean 'epanechnikov'"),
        ((["gaussian", "boxcar"],), {"axes": plt.figure().subplots()}, "axes must have one entry per kernel, 2, got 1"),
    ],
    AttentionDisplay.from_weights: [
        ((np.full(4, 0.25),), {}, r"shape \(queries, keys\)"),
        (([[0.5, np.nan]],), {}, r"nan at index \(0, 1\)"),
        (([[[[1.0]], [[np.nan]]]],), {}, r"nan at index \(0, 1, 0, 0\)"),
        (([[1j]],), {}, "weights must hold real numbers, got dtype complex128"),
        ((np.ma.array(np.eye(3), mask=np.eye(3) == 1),), {}, "is a masked array"),
        ((np.ones((1, 2, 1, 1)),), {"ax": plt.figure().subplots()}, "ax must have one entry per head, 2, got 1"),
        (([[1.0]],), {"title": ["a", "b"]}, "title must have one entry per column of heads"),
    ],
    BandwidthPathDisplay.from_estimator: [
        ((MODEL,), {}, "fit it with bandwidth='loo'"),
        ((OF_STREETS,), {}, "categorical columns alone; print"),
    ],
}


@pytest.mark.parametrize("call", REFUSED, ids=lambda call: call.__qualname__)
def test_what_cannot_be_drawn(call):
    for arguments, options, words in REFUSED[call]:
        with pytest.raises((TypeError, ValueError), match=words):
            call(*arguments, **options)
