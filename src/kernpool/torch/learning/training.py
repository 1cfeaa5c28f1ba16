"""Minibatch training of an encoder by the leave-one-out loss, with early stopping on held-out rows.

Each row of a batch is a query against the other training rows, or against a random sample of them. A weight is a
frequency: it multiplies the loss of a row and its weight as a key, and a row leaves one unit of itself out. `learn` is
the loop on tensors. `learn_similarity`, `load_similarity`, `similarity_state` and `encode` are the interface for the
estimators, from NumPy arrays and back.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.execution.warnings import warn_caller
from kernpool.torch.learning.encoders import MappedGaussianSimilarity, make_map, principal_start
from kernpool.torch.pooling import attention_pool

Array = NDArray[np.float64]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Schedule:
    """Hyperparameters of the loop that trains an encoder.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    max_epochs, batch_size, patience : int
        Passes at most, queries per step, and epochs without a better validation loss before it ends.
    penalty : float
        On the squared distance that rows are moved from where the first map puts them, over their own squared length.
    max_keys : int or None
        Keys drawn for each step; None for all.
    """

    learning_rate: float
    max_epochs: int
    batch_size: int
    patience: int
    penalty: float
    max_keys: int | None


@dataclass(frozen=True)
class History:
    """Training and validation losses by epoch, and the best epoch.

    Parameters
    ----------
    training_loss, validation_loss : ndarray of shape (epochs + 1,)
        Entry 0 is of the map as it came. Training losses are leave-one-out, without the penalty, averaged over the
        steps of an epoch and so a little older than the validation loss at the end of it.
    best_epoch : int
        Where the validation loss is lowest.
    reason : {"patience", "max_epochs", "divergence"}
        Why training ended: no better validation loss for `patience` epochs, the last epoch, or a loss that became
        infinite or NaN.
    """

    training_loss: Array
    validation_loss: Array
    best_epoch: int
    reason: str


@dataclass(frozen=True)
class RowTensors:
    """Rows that an encoder is trained on, as tensors.

    Parameters
    ----------
    x : Tensor of shape (n, d)
        Inputs.
    value : Tensor of shape (n, c)
        Outputs.
    weight : Tensor of shape (n,)
        Frequencies, positive.
    """

    x: Tensor
    value: Tensor
    weight: Tensor


def squared_error(pooled: Tensor, value: Tensor) -> Tensor:
    """Compute the squared error of each row, the mean over outputs."""
    return torch.mean((pooled - value) ** 2, dim=-1)


def log_loss(pooled: Tensor, label: Tensor, *, prior: Tensor, share: float) -> Tensor:
    """Compute the negative log probability of the true class of each row, smoothed with a fraction of the class priors.

    A row that no other row of its class is near has a probability of zero, whose logarithm would end everything. With a
    share of 1/(n + 1), the least that leave-one-out of n rows can prove, such a row counts about ``log(n)``.
    """
    right = torch.sum(pooled * label, dim=-1)
    mixed: Tensor = -torch.log((1.0 - share) * right + share * (label @ prior))
    return mixed


def gaussian_by_product(query: Tensor, key: Tensor) -> Tensor:
    """Compute the logits ``-|q - k|^2 / 2`` by a matrix product, for queries and keys in units of bandwidths.

    Rounding errs by the machine epsilon times the squared distance from the center of the keys, which gradient steps
    do not notice; differences take E times the memory and, in ten columns, five times as long (forward and backward).
    """
    center = key.detach().mean(dim=-2, keepdim=True)
    query, key = query - center, key - center
    squares = 0.5 * query.square().sum(dim=-1).unsqueeze(-1) + 0.5 * key.square().sum(dim=-1).unsqueeze(-2)
    return query @ key.transpose(-2, -1) - squares


def learn(
    encoder: nn.Module,
    rows: RowTensors,
    *,
    training: Tensor,
    validation: Tensor,
    loss: Loss,
    schedule: Schedule,
    generator: np.random.RandomState,
    progress: Progress | None = None,
) -> History:
    r"""Train an encoder by the leave-one-out loss, and restore its state at the lowest validation loss.

    .. math:: \frac{\sum_{i \in B} w_i L\Big(\sum_j \alpha_j(x_i)\, y_j,\ y_i\Big)}{\sum_{i \in B} w_i}
              + \text{penalty} \frac{\sum_{i \in B} w_i |f(x_i) - f_0(x_i)|^2}{\sum_{i \in B} w_i |f_0(x_i)|^2},
              \qquad \alpha_j(x_i) \propto \max(w_j - [i = j], 0)\, e^{-|f(x_i) - f(x_j)|^2 / 2}

    Parameters
    ----------
    encoder : nn.Module
        f; changed in place.
    rows : RowTensors
        Inputs, outputs and frequencies.
    training, validation : Tensor of int
        Which rows are queries and keys of gradient steps, and which are held out; these are predicted from the former.
    loss : callable
        ``(pooled, value) -> losses`` of rows.
    schedule : Schedule
        How to learn.
    generator : numpy.random.RandomState
        For the order of rows and the keys that are drawn.
    progress : callable, optional
        Called as ``progress(done, total)``, in queries.

    Returns
    -------
    History
        Losses, the best epoch, and why training ended.

    Warns
    -----
    UserWarning
        If a loss becomes infinite or NaN. Learning ends there, and the best map before it stays.

    Notes
    -----
    A step costs O(b n E) time and O(b n) memory for b queries, n keys and rows mapped to E numbers.
    """
    start = copy.deepcopy(encoder).requires_grad_(False)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=schedule.learning_rate)
    best, best_epoch, reason = copy.deepcopy(encoder.state_dict()), 0, "max_epochs"
    total, mass = schedule.max_epochs * len(training), rows.weight[training].sum().item()
    with torch.no_grad():
        key = _some(training, schedule, generator)
        training_losses = [_loss_of(encoder, rows, training, key, loss, schedule)]
        validation_losses = [_loss_of(encoder, rows, validation, training, loss, schedule)]
    for epoch in range(1, schedule.max_epochs + 1):
        seen = 0.0
        for done, batch in _batches(training, schedule, generator):
            key = _some(training, schedule, generator)
            optimizer.zero_grad()
            error, part = _left_out_loss(encoder, rows, batch, key, loss)
            seen += error.item() * part
            if not math.isfinite(seen):
                break
            if schedule.penalty:
                error = error + schedule.penalty * _displacement(encoder, start, rows, batch)
            error.backward()
            optimizer.step()
            if progress is not None:
                progress((epoch - 1) * len(training) + done, total)
        with torch.no_grad():
            found = _loss_of(encoder, rows, validation, training, loss, schedule)
        if not math.isfinite(seen + found):
            warn_caller(
                f"learning ended in epoch {epoch}, where the loss became infinite or NaN; what epoch {best_epoch} "
                f"found is kept. A learning_rate below {schedule.learning_rate:g} may go further",
            )
            reason = "divergence"
            break
        training_losses.append(seen / mass)
        validation_losses.append(found)
        if found < validation_losses[best_epoch]:
            best, best_epoch = copy.deepcopy(encoder.state_dict()), epoch
        elif epoch - best_epoch >= schedule.patience:
            reason = "patience"
            break
    encoder.load_state_dict(best)
    if progress is not None and total:
        progress(total, total)
    return History(np.array(training_losses), np.array(validation_losses), best_epoch, reason)


def _left_out_loss(
    encoder: nn.Module, rows: RowTensors, query: Tensor, key: Tensor, loss: Loss
) -> tuple[Tensor, float]:
    """Return the mean loss of predicting query rows from key rows, without a unit of themselves, and their weight."""
    weight, unit, own = rows.weight[query], rows.weight[key], query.unsqueeze(1) == key
    rest = (unit - 1.0).clamp_min(torch.finfo(unit.dtype).tiny)
    log_weight = torch.where(own, rest.log(), unit.log())

    def similarity(query: Tensor, key: Tensor) -> Tensor:
        return gaussian_by_product(query, key) + log_weight

    others = ~own | (unit > 1.0)
    pooled = attention_pool(
        encoder(rows.x[query]), encoder(rows.x[key]), rows.value[key], others, similarity=similarity
    )
    mass = weight.sum()
    return (weight * loss(pooled, rows.value[query])).sum() / mass, mass.item()


def _loss_of(encoder: nn.Module, rows: RowTensors, query: Tensor, key: Tensor, loss: Loss, schedule: Schedule) -> float:
    """Return the mean loss of predicting query rows from key rows, without a unit of themselves, in batches."""
    parts = [_left_out_loss(encoder, rows, part, key, loss) for part in query.split(schedule.batch_size)]
    return sum(error.item() * mass for error, mass in parts) / sum(mass for _, mass in parts)


def _displacement(encoder: nn.Module, start: nn.Module, rows: RowTensors, query: Tensor) -> Tensor:
    x, weight = rows.x[query], rows.weight[query].unsqueeze(1)
    before = start(x)
    length = (weight * before.square()).sum().clamp_min(torch.finfo(before.dtype).tiny)
    moved: Tensor = (weight * (encoder(x) - before).square()).sum() / length
    return moved


def _batches(training: Tensor, schedule: Schedule, generator: Any) -> Iterator[tuple[int, Tensor]]:
    """Yield random batches of the training rows, of nearly equal size, each with the number of rows so far.

    Each comes as a pair: the number of rows up to its end, and the indices of its rows.
    """
    order = generator.permutation(len(training))
    done = 0
    for part in np.array_split(order, math.ceil(len(order) / schedule.batch_size)):
        done += len(part)
        yield done, training[torch.as_tensor(part, device=training.device)]


def _some(training: Tensor, schedule: Schedule, generator: Any) -> Tensor:
    if schedule.max_keys is None or schedule.max_keys >= len(training):
        return training
    drawn = generator.permutation(len(training))[: schedule.max_keys]
    return training[torch.as_tensor(drawn, device=training.device)]


def loss_of(name: str, rows: RowTensors) -> Loss:
    """Return the loss function of a given name: squared error, or log loss with the class priors of the outputs.

    Parameters
    ----------
    name : {"squared_error", "log_loss"}
        Which.
    rows : RowTensors
        Outputs, for the latter one-hot labels, whose means are the class priors.

    Returns
    -------
    callable
        ``(pooled, value) -> losses`` of rows.
    """
    if name == "squared_error":
        return squared_error
    mass = rows.weight.sum()
    return partial(log_loss, prior=rows.weight @ rows.value / mass, share=1.0 / (mass.item() + 1.0))


@dataclass(frozen=True)
class Start:
    """Initial values of an encoder: center, spread and relevance (spread over bandwidth) of each column.

    Parameters
    ----------
    center, spread, relevance : ndarray of shape (d,)
        Centres and spreads of columns, and spreads over bandwidths.
    """

    center: Array
    spread: Array
    relevance: Array


def learn_similarity(
    X: Array,
    value: Array,
    weight: Array,
    start: Start,
    *,
    held_out: NDArray[np.intp],
    loss: str,
    parameters: Mapping[str, Any],
    generator: np.random.RandomState,
    progress: Progress | None = None,
) -> tuple[MappedGaussianSimilarity, History]:
    """Train the encoder of a similarity on NumPy arrays; return the similarity and the losses.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,)
        Frequencies, positive.
    start : Start
        Initial values of the encoder.
    held_out : ndarray of int
        Numbers of the rows that are held out; the others are learned from.
    loss : {"squared_error", "log_loss"}
        What is minimised.
    parameters : mapping
        Those of `LearnedPoolingRegressor`, checked.
    generator : numpy.random.RandomState
        For all that is drawn.
    progress : callable, optional
        Called as ``progress(done, total)``.

    Returns
    -------
    MappedGaussianSimilarity, History
        The similarity on the CPU in float64, where the exact engine goes on, and the losses.
    """
    device = as_device(parameters["device"])
    dtype = as_dtype(parameters["dtype"], device)
    size = X.shape[1] if parameters["output_size"] is None else parameters["output_size"]
    encoder = make_map(
        parameters["similarity"],
        start.center,
        start.spread,
        start.relevance,
        start=principal_start((X - start.center) / start.spread, start.relevance, size),
        hidden_sizes=parameters["hidden_sizes"],
        generator=generator,
        dtype=dtype,
    ).to(device)
    names = ("learning_rate", "max_epochs", "batch_size", "patience", "penalty", "max_keys")
    rows = RowTensors(*(torch.tensor(array, dtype=dtype, device=device) for array in (X, value, weight)))
    is_held_out = np.isin(np.arange(len(X)), held_out)
    history = learn(
        encoder,
        rows,
        training=torch.as_tensor(np.flatnonzero(~is_held_out), device=device),
        validation=torch.as_tensor(held_out, device=device),
        loss=loss_of(loss, rows),
        schedule=Schedule(**{name: parameters[name] for name in names}),
        generator=generator,
        progress=progress,
    )
    return MappedGaussianSimilarity(encoder.to("cpu", torch.float64)), history


def load_similarity(
    state: Mapping[str, Array], kind: str, columns: int, output_size: int | None, hidden_sizes: Any
) -> MappedGaussianSimilarity:
    """Create a similarity from the saved, already validated state of its encoder."""
    nothing = np.ones(columns)
    start = np.ones((columns if output_size is None else output_size, columns))
    encoder = make_map(kind, nothing, nothing, nothing, start=start, hidden_sizes=hidden_sizes)
    encoder.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return MappedGaussianSimilarity(encoder)


def similarity_state(similarity: MappedGaussianSimilarity) -> dict[str, Array]:
    """Return parameters and buffers of a similarity's encoder as NumPy arrays by name."""
    return {name: tensor.numpy() for name, tensor in similarity.encoder.state_dict().items()}


def encode(similarity: MappedGaussianSimilarity, X: Array) -> Array:
    """Map rows to the outputs of a similarity's encoder, on which the similarity is a Gaussian of bandwidth one."""
    with torch.no_grad():
        encoded: Array = similarity.encoder(torch.tensor(X, dtype=torch.float64)).numpy()
    return encoded


def as_device(device: Any) -> torch.device:
    """Return a torch device; raise ValueError if it is unknown or not available.

    Parameters
    ----------
    device : str, torch.device or None
        None is the CPU.

    Returns
    -------
    torch.device
        Device of the training.

    Raises
    ------
    ValueError
        If torch does not know it, or cannot use it here.
    """
    try:
        found = torch.device("cpu" if device is None else device)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(
            f"device {abbreviate(device)} cannot be used: {reason[0]:.200}; "
            "device=None is the CPU, 'cuda' the first GPU"
        ) from None
    return found


def as_dtype(dtype: str | None, device: torch.device) -> torch.dtype:
    """Return the torch dtype of a given name; for None, float64 on the CPU and float32 on other devices."""
    if dtype is None:
        dtype = "float64" if device.type == "cpu" else "float32"
    found: torch.dtype = getattr(torch, dtype)
    return found
