"""Regression by a similarity that learns."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from kernpool.estimators.learned.base import LearnedPooling
from kernpool.estimators.rows import Scoring, read_numbers

Array = NDArray[np.float64]


# Scikit-learn ships no types.
class LearnedPoolingRegressor(Scoring, RegressorMixin, LearnedPooling):  # type: ignore[misc]
    r"""Nadaraya-Watson (local constant) regression with a similarity that learns; needs the extra ``torch``.

    .. math:: \hat y(x) = \sum_j \operatorname{softmax}_j\big(-\tfrac12 |f(x) - f(x_j)|^2\big)\, y_j

    The map f starts from the bandwidths of `NadarayaWatsonRegressor` and follows the gradient of the leave-one-out
    squared error, while rows that are held out are predicted better and better.

    Parameters
    ----------
    similarity : {"linear", "per_feature", "width", "encoder"}, default="linear"
        What learns: any linear map of the columns, as in metric learning for kernel regression [1]_; a bandwidth per
        column, or one factor for all, which is what a search finds in closed form; or a linear map with a perceptron
        beside it, as in ModernNCA [2]_. Linear by default, since it finds directions that no bandwidth per column can.
    output_size : int or None, default=None
        How many numbers a linear map or an encoder maps rows to; None for as many as columns. With fewer it starts from
        the principal directions of the rows, in units of bandwidths.
    hidden_sizes : sequence of int, default=(64,)
        Hidden layers of the encoder.
    learning_rate : float, default=0.01
        Of Adam. Parameters are of the order of one, so this is about a hundredth of what they are per step.
    max_epochs : int, default=200
        Passes over the rows at most. 0 leaves the closed form.
    batch_size : int, default=64
        Queries per gradient step. With more than there are rows, each epoch is one step.
    penalty : float, default=0.01
        On how far rows are moved from where the start has them, squared and in units of their squared length; a
        full linear map of a small table overfits without it.
    validation_fraction : float, default=0.15
        Share of rows held out to tell which epoch is best, at least one. They are keys in the end.
    patience : int, default=20
        Epochs without a better validation loss before learning ends.
    warm_start_bandwidth : bool, default=True
        Start from bandwidths by exact leave-one-out, or else from the rule of Scott. The search takes all rows, also
        those that are held out later: epoch zero then is ``NadarayaWatsonRegressor(bandwidth="loo")``, and looks a
        little better than it is, so learning is kept only where it gains more.
    max_keys : int or None, default=None
        Keys drawn for each gradient step, for tables so large that all of them take too long; None for all. Validation
        and prediction take all keys in any case.
    random_state : int, RandomState or None, default=None
        For the rows held out, the order of rows and the first weights of an encoder. With an int, results are the same
        each time on the same machine with the same number of torch threads.
    device : str, torch.device or None, default=None
        Where to learn; None is the CPU. A fitted model is on the CPU, where the exact engine predicts.
    dtype : {"float64", "float32"} or None, default=None
        Numbers to learn with. None is float64 on the CPU: on small tables it costs next to nothing, epoch zero equals
        the closed form to rounding, and the differences between epochs, which decide when to stop, are small beside
        the loss. Elsewhere it is float32, which other devices are built for.
    n_jobs : int or None, default=None
        Threads of the search and of predictions; those of torch are ``torch.set_num_threads``.

    Attributes
    ----------
    similarity_ : MappedGaussianSimilarity
        The learned similarity, a torch module for `kernpool.torch.AttentionPooling`; `encode` is its map.
    key_, value_ : ndarray
        The training rows, all of them, and outputs.
    history_ : dict of ndarray
        ``"training_loss"`` and ``"validation_loss"`` per epoch, in units of the variance of y; entry 0 is the start.
    best_epoch_ : int
        The epoch that is kept, 0 for the closed form.
    bandwidth_search_ : BandwidthSearch
        What the start was found by; only with `warm_start_bandwidth`.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    See Also
    --------
    NadarayaWatsonRegressor : Where it starts; for categorical columns, weights of rows and other kernels too.
    kernpool.torch.AttentionPooling : The layer, to build models from.

    Notes
    -----
    An epoch costs O(n^2 E + n d E) for maps to E numbers, and a step O(batch_size n) memory.
    `kernpool.execution.progress.report_progress` listens to the search and then to learning. ``predict`` is that of
    `NadarayaWatsonRegressor`: exact, and without the n x m matrix.

    There is no ``sample_weight``: a row of weight 3 and three equal rows would be the same in the loss and not in the
    draws of batches and held-out rows. Repeat rows instead.

    References
    ----------
    .. [1] K. Q. Weinberger and G. Tesauro, "Metric learning for kernel regression", AISTATS 2007, 612-619.
    .. [2] H.-J. Ye, H.-H. Yin, D.-C. Zhan and W.-L. Chao, "Revisiting nearest neighbor for tabular data: a deep tabular
       baseline two decades later", arXiv:2407.03257.

    Examples
    --------
    Only one direction matters, and it is no column:

    >>> import numpy as np
    >>> from kernpool import LearnedPoolingRegressor, NadarayaWatsonRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = np.sin(X.sum(axis=1))
    >>> learned = LearnedPoolingRegressor(random_state=0, max_epochs=60).fit(X[:150], y[:150])
    >>> columns = NadarayaWatsonRegressor().fit(X[:150], y[:150])
    >>> bool(learned.score(X[150:], y[150:]) > columns.score(X[150:], y[150:]) + 0.2)
    True
    """

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find bandwidths, learn the map, and store all rows as keys.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs, at least three rows.
        y : array_like of shape (n,) or (n, c)
            Outputs; several count in units of their standard deviations.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If X or y holds NaN or infinity, shapes do not match, there are too few rows, or a parameter is out of its
            range.
        ImportError
            If torch is not installed.

        Warns
        -----
        RepeatedRowsWarning
            If a tenth of the rows or more are copies of others, and chance does not explain it; drop duplicates.
        """
        key, output = read_numbers(self, X, y, numbers=True)
        self._fit_pairs(key, output.astype(np.float64), np.zeros(len(key), dtype=np.intp), "squared_error")
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict from the training rows.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            One prediction per query.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows in the space that both are mapped to.
        """
        return self._pool(X)
