"""Regressor and classifier with a learned similarity.

A fit starts from bandwidths and smoothings in closed form, then takes gradient steps while the error on held-out rows
falls. Predictions, leave-one-out fits and intervals are those of a local constant smoother of the mapped rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import LOG_LOSS, leave_one_out, prior_of_others, prior_share, rule_of_thumb, warn_of_copies
from kernpool.bandwidth.search import BandwidthSearch, SearchOptions, TrainingRows, search_bandwidth
from kernpool.conformal import Calibration, ConformalProblem, PredictionInterval, as_fraction, prediction_interval
from kernpool.core import Categories, Keys
from kernpool.data.encoding import Encoding
from kernpool.data.model_format import Record, SavedModel
from kernpool.estimators.bandwidth import in_order_of_columns
from kernpool.estimators.extrapolation import reach_of_rows, warn_of_extrapolation
from kernpool.estimators.fitted_model import read_query
from kernpool.estimators.learned.columns import categories_of, indicator_scales, with_indicators
from kernpool.estimators.learned.files import record_of, restored
from kernpool.estimators.learned.parameters import check_parameters
from kernpool.estimators.methods.calibration import as_method, check_rows, read_outputs
from kernpool.estimators.methods.classification import MostProbableClass
from kernpool.estimators.parameter_validation import NamedCalls
from kernpool.estimators.training_rows import ReadRows, Scoring, class_prior, frequencies, mixed, one_hot, read_rows
from kernpool.execution.progress import current_progress
from kernpool.execution.text_table import PrintedResult, lines_of
from kernpool.execution.threads import resolve_n_jobs
from kernpool.kernels import get_kernel
from kernpool.pooling import Recipe, pool, pooling_weights
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

if TYPE_CHECKING:
    from kernpool.torch.learning.training import Start

Array = NDArray[np.float64]

FEWEST_ROWS = 3
WIDTH_OF_CONSTANT = 1e-4  # spread over bandwidth that learning starts from, where the bandwidth is infinite


@dataclass(frozen=True)
class LearningSummary(PrintedResult):
    """Summary of a fitted learned estimator: what learned, how long, and why it stopped.

    Parameters
    ----------
    title : str
        Name of the model.
    rows : float
        Sum of the weights of the rows.
    columns, outputs : int
        Numbers of input columns, and of outputs or classes.
    similarity : str
        What learns, from how many numbers to how many.
    epochs, best_epoch : int
        Epochs that were run, and the one that is kept.
    first_loss, best_loss : float
        Validation loss at the start and at the best epoch.
    stopped : str
        Why training ended.

    Examples
    --------
    >>> print(LearningSummary("LearnedPoolingRegressor", 90.0, 3, 1, "linear, 3 to 2", 30, 9, 0.5, 0.25, "patience"))
    LearnedPoolingRegressor: 90 rows, 3 columns, 1 output
      similarity  linear, 3 to 2
      learning    30 epochs, 9 is kept: validation loss 0.5 -> 0.25; stopped by patience
    """

    title: str
    rows: float
    columns: int
    outputs: int
    similarity: str
    epochs: int
    best_epoch: int
    first_loss: float
    best_loss: float
    stopped: str

    def __str__(self) -> str:
        d, c = self.columns, self.outputs
        head = f"{self.title}: {self.rows:g} rows, {d} column{'s' * (d != 1)}, {c} output{'s' * (c != 1)}"
        loss = f"validation loss {self.first_loss:.4g} -> {self.best_loss:.4g}"
        facts = {
            "similarity": self.similarity,
            "learning": f"{self.epochs} epochs, {self.best_epoch} is kept: {loss}; stopped by {self.stopped}",
        }
        return "\n".join([head, *(f"  {line}" for line in lines_of(facts))])


class LearnedPooling(SavedModel, NamedCalls, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Base class of estimators with a learned similarity: trains it, pools values, and exposes the weights.

    Subclasses define values and loss.
    """

    _reads_pairs_as_numbers = False  # how `read_rows` reads columns

    def __init__(
        self,
        similarity: str = "linear",
        *,
        output_size: int | None = None,
        hidden_sizes: Sequence[int] = (64,),
        learning_rate: float = 0.01,
        max_epochs: int = 200,
        batch_size: int = 64,
        penalty: float = 0.01,
        validation_fraction: float = 0.15,
        patience: int = 20,
        warm_start_bandwidth: bool = True,
        max_keys: int | None = None,
        unordered: Collection[str | int] | None = None,
        ordered: Collection[str | int] | None = None,
        unseen: str = "raise",
        random_state: Any = None,
        device: Any = None,
        dtype: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.similarity = similarity
        self.output_size = output_size
        self.hidden_sizes = hidden_sizes
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.penalty = penalty
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start_bandwidth = warm_start_bandwidth
        self.max_keys = max_keys
        self.unordered = unordered
        self.ordered = ordered
        self.unseen = unseen
        self.random_state = random_state
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs

    def _learn(
        self, read: ReadRows, value: Array, strata: NDArray[np.intp], loss: Literal["squared_error", "log_loss"],
        sample_weight: ArrayLike | None,
    ) -> None:  # fmt: skip
        """Learn the similarity by gradient steps, and store the training rows as keys and values."""
        standardise = loss == "squared_error"  # outputs in units of their deviations; one-hot labels have the same unit
        key, categories = np.array(read.key, dtype=np.float64), categories_of(read.encoding)
        columns, parameters = with_indicators(key, read.code, categories), self.get_params()
        check_parameters(parameters, columns.shape[1])
        resolve_n_jobs(self.n_jobs)
        weight = None if sample_weight is None else frequencies(sample_weight, len(key))
        (kept,) = np.nonzero(np.ones(len(key)) if weight is None else weight > 0)
        if len(kept) < FEWEST_ROWS:
            raise ValueError(
                f"learning needs at least {FEWEST_ROWS} rows, of which one is held out, got n_samples = {len(kept)}; "
                "NadarayaWatsonRegressor and NadarayaWatsonClassifier do with one"
            )
        from kernpool.torch.learning.training import as_device, learn_similarity  # says which extra is missing

        as_device(self.device)  # to be refused before the long work
        output = value.reshape(len(value), -1)[kept].astype(np.float64)
        rows = TrainingRows.from_arrays(key[kept], output, None if weight is None else weight[kept], read.code[kept])
        warn_of_copies(rows, takes_groups=False, bandwidth="loo" if self.warm_start_bandwidth else None)
        generator, progress = check_random_state(self.random_state), current_progress()
        search, start = self._start(rows, columns[kept], categories, standardise)
        if standardise:
            center, deviation = _moments(output, rows.weight)
            output = (output - center) / np.where(deviation > 0, deviation, 1.0)
        _, held_out = split_rows(strata[kept], self.validation_fraction, generator)
        similarity, history = learn_similarity(
            columns[kept], output, rows.weight, start, held_out=held_out, loss=loss, parameters=parameters,
            generator=generator, progress=progress,
        )  # fmt: skip
        # Nothing is assigned before everything is known, so that a failed refit leaves the old fit whole.
        self.__dict__.pop("bandwidth_search_", None)
        if search is not None:
            names = vars(self).get("feature_names_in_") if read.encoding is None else read.encoding.names
            found = {"relevance_": search.relevance, "bandwidth_search_": search}
            self.bandwidth_search_ = in_order_of_columns(found, names, read.encoding)["bandwidth_search_"]
        self.encoding_: Encoding | None = read.encoding
        self.similarity_, self.key_, self.key_code_, self.key_weight_ = similarity, key, read.code, weight
        self.value_, self.validation_rows_ = value.copy(), kept[held_out]
        self.history_ = {"training_loss": history.training_loss, "validation_loss": history.validation_loss}
        self.best_epoch_, self.stop_reason_ = history.best_epoch, history.reason

    def _start(
        self, rows: TrainingRows, columns: Array, categories: Categories, standardise: bool
    ) -> tuple[BandwidthSearch | None, Start]:
        """Choose initial bandwidths and smoothings; return the bandwidth search (or None), and the start."""
        from kernpool.torch.learning.training import Start

        center, deviation = _moments(columns, rows.weight)
        d, scales = rows.X.shape[1], np.ones(columns.shape[1] - rows.X.shape[1])
        if not self.warm_start_bandwidth:
            search, bandwidth = None, rule_of_thumb(rows.X, rows.weight)
            spread = np.where(deviation[:d] > 0, deviation[:d], 1.0)
        else:
            search = self._search(rows, categories, standardise)
            bandwidth, spread, scales = search.bandwidth, search.spread, indicator_scales(categories, search.smoothing)
        # Where a column has no effect there is no slope to learn by.
        relevance = np.where(np.isinf(bandwidth), WIDTH_OF_CONSTANT, spread / bandwidth)
        relevance = np.append(relevance, np.maximum(scales, WIDTH_OF_CONSTANT))
        return search, Start(center, np.append(spread, np.ones_like(scales)), relevance)

    def _search(self, rows: TrainingRows, categories: Categories, standardise: bool) -> BandwidthSearch:
        # All rows take part, those that are held out too: epoch zero is then the very fit of NadarayaWatsonRegressor(),
        # and looks a little better on held-out rows than it is, so that learning has to be better than by chance.
        # Classes start where their log loss is least: the best Brier score may be that of one neighbour per window,
        # and cross-entropy has no slope there to leave it by.
        options = SearchOptions(
            get_kernel("gaussian"),
            common_factor=self.similarity == "width" and not len(categories),
            n_jobs=self.n_jobs,
            progress=current_progress(),
        )
        options = options if standardise else replace(options, criterion=LOG_LOSS)
        return search_bandwidth(rows, options, categories)

    def _encode(self, key: Array, code: NDArray[np.int64] | None) -> Array:
        from kernpool.torch.learning.training import encode

        return encode(self.similarity_, with_indicators(key, code, categories_of(self.encoding_)))

    def encode(self, X: ArrayLike) -> Array:
        """Map rows to the learned space, in which the similarity is a Gaussian of width one.

        Parameters
        ----------
        X : array_like of shape (m, d), or frame
            Rows.

        Returns
        -------
        ndarray of shape (m, E)
            With E = d, where a categorical column counts once for each level, or `output_size`. Rows that are one apart
            get a weight of ``exp(-1/2)``.
        """
        check_is_fitted(self)
        return self._encode(*read_query(self, X, warn=False))

    @property
    def _mapped_keys(self) -> Array:
        return self._encode(self.key_, self.key_code_)

    def _encoded(self, X: ArrayLike) -> tuple[Array, Array]:
        query, key = self.encode(X), self._mapped_keys
        counted = key if self.key_weight_ is None else key[self.key_weight_ > 0]
        warn_of_extrapolation(reach_of_rows(counted, None, np.ones(key.shape[1])), query)
        return query, key

    def _smoother(self) -> Smoother:
        """Return the fit as a local constant smoother of the mapped rows."""
        key = self._mapped_keys
        recipe = Recipe.of("gaussian", np.ones(key.shape[1]), n_jobs=self.n_jobs)
        return Smoother(Keys.read(key, self.value_, self.key_weight_), recipe)

    def _pool(self, X: ArrayLike) -> Array:
        query, key = self._encoded(X)
        pooled = pool(
            query, key, self.value_, key_weight=self.key_weight_, bandwidth=1.0, n_jobs=self.n_jobs,
            progress=current_progress(),
        )  # fmt: skip
        return cast(Array, pooled)

    @property
    def n_epochs_(self) -> int:
        """Number of epochs that were run."""
        return len(self.history_["validation_loss"]) - 1

    @property
    def best_validation_loss_(self) -> float:
        """Validation loss at `best_epoch_`."""
        return float(self.history_["validation_loss"][self.best_epoch_])

    def summary(self) -> LearningSummary:
        """Summarise the fit: what learned, how many epochs, the best validation loss, and why training ended.

        Returns
        -------
        LearningSummary
            A record that prints well.
        """
        check_is_fitted(self)
        columns = with_indicators(self.key_[:1], self.key_code_[:1], categories_of(self.encoding_)).shape[1]
        mapped = self._encode(self.key_[:1], self.key_code_[:1]).shape[1]
        weight = self.key_weight_
        return LearningSummary(
            type(self).__name__, float(len(self.key_) if weight is None else weight.sum()), self.n_features_in_,
            self.value_.reshape(len(self.value_), -1).shape[1], f"{self.similarity}, {columns} to {mapped}",
            self.n_epochs_, self.best_epoch_, float(self.history_["validation_loss"][0]), self.best_validation_loss_,
            self.stop_reason_,
        )  # fmt: skip

    def attention_weights(self, X: ArrayLike, *, max_bytes: int = 1 << 30) -> Array:
        """Compute the weight of every training row in each prediction.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        max_bytes : int, default=2**30
            The largest result allowed, since it has one entry per query and training row.

        Returns
        -------
        ndarray of shape (m, n)
            Row i is a probability distribution over the training rows; its product with the training outputs is the
            prediction.
        """
        query, key = self._encoded(X)
        return pooling_weights(query, key, key_weight=self.key_weight_, bandwidth=1.0, max_bytes=max_bytes)

    def _to_record(self) -> Record:
        """Return the fitted model as a `Record` of JSON and arrays, as `save_model` writes them."""
        return record_of(self)

    @classmethod
    def _from_record(cls, record: Record) -> Self:
        """Create a fitted model from a saved `Record` after validating it; used by `load_model`."""
        model: Self = restored(cls, record)
        return model


def _moments(columns: Array, weight: Array) -> tuple[Array, Array]:
    """Return weighted means and standard deviations of columns."""
    center = np.average(columns, axis=0, weights=weight)
    return center, np.sqrt(np.average((columns - center) ** 2, axis=0, weights=weight))


def split_rows(
    strata: NDArray[np.intp], fraction: float, generator: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split row indices at random into training and validation rows, stratified, e.g. by class.

    Parameters
    ----------
    strata : ndarray of int, shape (n,)
        Number of the stratum of each row, such as its class.
    fraction : float
        Fraction of rows to hold out; at least one row is, and at least two are not.
    generator : numpy.random.RandomState
        For the draw.

    Returns
    -------
    ndarray, ndarray
        Row numbers in ascending order.

    Examples
    --------
    >>> training, validation = split_rows(np.array([0, 0, 0, 1, 1, 1]), 0.34, np.random.RandomState(0))
    >>> len(training), len(validation), int(validation.max()) > 2
    (4, 2, True)
    """
    n = len(strata)
    count = min(max(1, round(fraction * n)), n - 2)
    order = generator.permutation(n)
    order = order[np.argsort(strata[order], kind="stable")]
    held_out = ((np.arange(count) + generator.uniform()) * n / count).astype(np.intp)  # evenly along the strata
    is_held_out = np.zeros(n, dtype=bool)
    is_held_out[order[held_out]] = True
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


# Scikit-learn ships no types.
class LearnedPoolingRegressor(Scoring, RegressorMixin, LearnedPooling):  # type: ignore[misc]
    r"""Nadaraya-Watson (local constant) regression with a learned similarity; needs the extra ``torch``.

    .. math:: \hat y(x) = \sum_j \operatorname{softmax}_j\big(-\tfrac12 |f(x) - f(x_j)|^2\big)\, y_j

    The map f starts from the bandwidths of `NadarayaWatsonRegressor` and follows the gradient of the leave-one-out
    squared error, while rows that are held out are predicted better and better.

    Parameters
    ----------
    similarity : {"linear", "per_feature", "width", "encoder"}, default="linear"
        What learns: any linear map of the columns, as in metric learning for kernel regression [1]_; a bandwidth per
        column, or one factor for all, which is what a search finds in closed form; or a linear map with a perceptron
        in parallel, as in ModernNCA [2]_. Linear by default, since it finds directions that bandwidths cannot.
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
        Fraction of rows held out to choose the best epoch, at least one. They are keys in the end.
    patience : int, default=20
        Epochs without a better validation loss before learning ends.
    warm_start_bandwidth : bool, default=True
        Start from bandwidths by exact leave-one-out, or else from the rule of Scott. The search takes all rows, also
        those that are held out later: epoch zero then is ``NadarayaWatsonRegressor(bandwidth="loo")``, and looks a
        little better than it is, so learning is kept only where it gains more.
    max_keys : int or None, default=None
        Keys drawn for each gradient step, for tables so large that all of them take too long; None for all. Validation
        and prediction take all keys in any case.
    unordered, ordered : collection of str or int, or None, default=None
        Names or positions of categorical columns, in addition to those that the types of a frame show; as in
        `NadarayaWatsonRegressor`. The map takes an indicator of each category, or of each step between ordered ones.
    unseen : {"raise", "unlike"}, default="raise"
        What a category is that the training rows did not have: an error, or as far from each of them.
    random_state : int, RandomState or None, default=None
        For the rows held out, the order of rows and the first weights of an encoder. With an int, results are the same
        each time on the same machine with the same number of torch threads.
    device : str, torch.device or None, default=None
        Where to learn; None is the CPU. A fitted model is on the CPU, where the exact engine predicts, so it is loaded
        and predicts where the device does not exist.
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
    key_, key_code_, value_ : ndarray
        Numeric columns, category codes and outputs of the training rows, all of them.
    key_weight_ : ndarray of shape (n,) or None
        Frequencies, None without.
    validation_rows_ : ndarray of int
        Indices of the training rows that were held out of gradient steps.
    history_ : dict of ndarray
        ``"training_loss"`` and ``"validation_loss"`` per epoch, in units of the variance of y; entry 0 is the start.
    n_epochs_, best_epoch_ : int
        Epochs that were run, and the one that is kept, 0 for the closed form.
    best_validation_loss_ : float
        Validation loss at the epoch that is kept.
    stop_reason_ : {"patience", "max_epochs", "divergence"}
        Why training ended: no better validation loss for `patience` epochs, the last epoch, or a loss that became
        infinite or NaN.
    bandwidth_search_ : BandwidthSearch
        What the start was found by; only with `warm_start_bandwidth`.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X had any.

    See Also
    --------
    NadarayaWatsonRegressor : Where it starts; for missing cells, groups and other kernels too.
    kernpool.torch.AttentionPooling : The layer, to build models from.

    Notes
    -----
    An epoch costs O(n^2 E + n d E) for maps to E numbers, and a step O(batch_size n) memory.
    `kernpool.execution.progress.report_progress` listens to the search and then to learning. ``predict`` is that of
    `NadarayaWatsonRegressor`: exact, and without the n x m matrix.

    A weight is a frequency: a row of weight 3 equals three rows in the start, the losses, and predictions. It is one
    row where batches and held-out rows are drawn, so that training takes other steps than with three rows; with one
    batch of all rows, and all copies of a row held out together, they are the same.

    Categorical columns start at the smoothings of a search, with the kernels ``"aitchison_aitken"`` and
    ``"li_racine_ordered"``. A linear map learns a vector for each category, an embedding; ``"per_feature"`` a scale.

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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose initial bandwidths, train the similarity, and store all rows as keys.

        Parameters
        ----------
        X : array_like of shape (n, d), or frame
            Inputs, at least three rows. Columns of text and categories are categorical, dates are days.
        y : array_like of shape (n,) or (n, c)
            Outputs; several count in units of their standard deviations.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.

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
        read = read_rows(self, X, y, numbers=True)
        strata = np.zeros(len(read.key), dtype=np.intp)
        self._learn(read, read.output.astype(np.float64), strata, "squared_error", sample_weight)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict y at new rows by pooling the training outputs with the learned similarity.

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

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: Literal["auto", "adaptive", "split"] = "auto",
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
    ) -> PredictionInterval:
        """Compute prediction intervals: they contain a new observation of y with a given probability.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.9
            Coverage of the intervals, for each output separately.
        method : {"auto", "adaptive", "split"}, default="auto"
            ``"auto"`` is ``"adaptive"``: as wide as the noise is around x. ``"split"``: one width, from calibration
            rows.
        X_calibration, y_calibration : array_like, optional
            Rows that the model was not fitted to: intervals then have a finite-sample guarantee. Without them
            leave-one-out residuals of the validation rows calibrate, which took part in no gradient step.

        Returns
        -------
        PredictionInterval
            With `center`, `lower`, `upper` and the coverage statement `guarantee`.

        Raises
        ------
        ValueError
            If an argument is out of its range, or ``"split"`` has no calibration rows.

        Warns
        -----
        InferenceWarning
            If there are too few rows for the level, so that intervals are infinite.

        Notes
        -----
        Of 90 percent intervals by validation rows 89 to 93 in a hundred cover (100 to 400 rows, 3 to 8 columns, a
        linear map or an encoder, 4 to 6 samples each); by all training rows, whose outputs the map has seen, 80 to 90.
        """
        check_is_fitted(self)
        chosen, smoother, fraction, left_out = as_method(method), self._smoother(), as_fraction(level), None
        if check_rows(X_calibration, y_calibration, None):
            there = EvaluationPoints(self.encode(cast(ArrayLike, X_calibration)))
            value = read_outputs(y_calibration, (len(there.query), *self.value_.shape[1:]))
            predicted = smoother.predict(smoother.problem(there))
            calibration = Calibration(there, value, predicted, np.ones(len(value)))
        else:
            left_out = smoother.predict(smoother.left_out_problem(None))
            which, points = self.validation_rows_, smoother.training
            calibration = Calibration(
                points.rows(which), smoother.value[which], left_out[which], smoother.weight[which], which=which
            )
        places, generator = EvaluationPoints(self._encoded(X)[0]), np.random.default_rng(0)
        setting = ConformalProblem(smoother, places, fraction, calibration, generator, "found", known=left_out)
        found = prediction_interval(setting, chosen)
        center, lower, upper = (
            end[:, 0] if self.value_.ndim == 1 else end for end in (found.center, found.lower, found.upper)
        )
        return replace(found, center=center, lower=lower, upper=upper)


# Scikit-learn ships no types.
class LearnedPoolingClassifier(MostProbableClass, Scoring, ClassifierMixin, LearnedPooling):  # type: ignore[misc]
    r"""Nadaraya-Watson (local constant) classification with a learned similarity; needs the extra ``torch``.

    .. math:: \hat p_c(x) = (1 - s) \sum_j \operatorname{softmax}_j\big(-\tfrac12 |f(x) - f(x_j)|^2\big)\, [y_j = c]
              + s\, \pi_c

    The map f starts from the bandwidths of ``NadarayaWatsonClassifier(bandwidth="log_loss")`` and follows the gradient
    of the leave-one-out negative log likelihood, while rows that are held out become more likely. The weight s of the
    class priors is found at the end, by leave-one-out of all rows.

    Parameters
    ----------
    similarity : {"linear", "per_feature", "width", "encoder"}, default="linear"
        As in `LearnedPoolingRegressor`. The linear map is that of neighbourhood components analysis [1]_.
    output_size, hidden_sizes, learning_rate, max_epochs, batch_size, penalty, patience
        As in `LearnedPoolingRegressor`.
    validation_fraction : float, default=0.15
        As there; every class is held out in proportion.
    warm_start_bandwidth, max_keys, unordered, ordered, unseen, random_state, device, dtype, n_jobs
        As in `LearnedPoolingRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies of the training rows.
    prior_share_ : float
        The weight of the class priors in `predict_proba`; see `NadarayaWatsonClassifier`.
    history_ : dict of ndarray
        ``"training_loss"`` and ``"validation_loss"`` per epoch, in nats per row; entry 0 is the start.
    similarity_, key_, key_code_, value_, key_weight_, validation_rows_, n_epochs_, best_epoch_, best_validation_loss_,
    stop_reason_, bandwidth_search_, n_features_in_, feature_names_in_
        As in `LearnedPoolingRegressor`; values are one-hot labels.

    See Also
    --------
    LearnedPoolingRegressor : The same for numbers, with the notes on cost.
    NadarayaWatsonClassifier : Where it starts.

    Notes
    -----
    While it learns, the weight of the priors is 1/(n + 1): a row that no other row of its class is near would count
    infinitely much without.

    It does not start from the least Brier score. Where many columns separate a few rows, that is at bandwidths so
    narrow that no gradient is left to follow: in five folds of scikit-learn's 178 wines the log loss was 0.92 from
    there, without the share, and is 0.08 now. A rule to start from (``warm_start_bandwidth=False``) may learn more
    where a direction matters that no column has: on a plane (``output_size=2``) 98 % of the wines are right, at 0.06;
    with a search 97 %, at 0.08.

    References
    ----------
    .. [1] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood components analysis", NIPS 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernpool import LearnedPoolingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LearnedPoolingClassifier(random_state=0, max_epochs=20).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose initial bandwidths, train the similarity, and store all rows as keys.

        Parameters
        ----------
        X : array_like of shape (n, d), or frame
            Inputs, at least three rows.
        y : array_like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If X holds NaN or infinity, y is continuous, shapes do not match, there are too few rows, or a parameter is
            out of its range.
        ImportError
            If torch is not installed.

        Warns
        -----
        RepeatedRowsWarning
            If a tenth of the rows or more are copies of others, and chance does not explain it; drop duplicates.
        """
        read = read_rows(self, X, y, numbers=False)
        classes, labels, value = one_hot(read.output, np.float64)
        self._learn(read, value, labels, "log_loss", sample_weight)
        self.classes_ = classes
        left_out, weight = leave_one_out(self._smoother().left_out_problem(None), n_jobs=self.n_jobs), self.key_weight_
        pooled = np.sum(value * left_out.prediction, axis=1)
        kept = slice(None) if weight is None else weight > 0
        counted = None if weight is None else weight[kept]
        self.prior_share_ = prior_share(pooled[kept], prior_of_others(value[kept], counted), counted).share
        return self

    @property
    def class_prior_(self) -> Array:
        """Class frequencies of the training rows, of shape (n_classes,)."""
        return class_prior(self.value_, self.key_weight_)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict class probabilities: pooled one-hot labels, shrunk towards the class priors.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Probabilities in the order of `classes_`.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows in the space that both are mapped to.
        """
        return mixed(np.clip(self._pool(X), 0.0, 1.0), self.class_prior_, self.prior_share_)  # rounding leaves -1e-17
