"""Learning a map by minibatches: every row is a query against all other rows, and rows held out say when to stop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kernpool.execution.progress import Progress
from kernpool.execution.warnings import warn_caller
from kernpool.torch.pooling import attention_pool

Array = NDArray[np.float64]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Schedule:
    """How to learn.

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
    """What became of it.

    Parameters
    ----------
    training_loss, validation_loss : ndarray of shape (epochs + 1,)
        Entry 0 is of the map as it came. Training losses are leave-one-out, without the penalty, averaged over the
        steps of an epoch and so a little older than the validation loss at the end of it.
    best_epoch : int
        Where the validation loss is lowest.
    """

    training_loss: Array
    validation_loss: Array
    best_epoch: int


def squared_error(pooled: Tensor, value: Tensor) -> Tensor:
    """Mean squared error over rows and outputs."""
    return torch.mean((pooled - value) ** 2)


def log_loss(pooled: Tensor, label: Tensor, *, prior: Tensor, share: float) -> Tensor:
    """Mean negative logarithm of the pooled probability of the right class, with a share of the priors mixed in.

    A row that no other row of its class is near has a probability of zero, whose logarithm would end everything. With a
    share of 1/(n + 1), the least that leave-one-out of n rows can prove, such a row counts about ``log(n)``.
    """
    right = torch.sum(pooled * label, dim=-1)
    mixed: Tensor = -torch.mean(torch.log((1.0 - share) * right + share * (label @ prior)))
    return mixed


def gaussian_by_product(query: Tensor, key: Tensor) -> Tensor:
    """Gaussian logits of rows in units of bandwidths, by a matrix product.

    Rounding errs by the machine epsilon times the squared distance from the center of the keys, which gradient steps
    do not notice; differences take E times the memory and, in ten columns, five times as long (forward and backward).
    """
    center = key.detach().mean(dim=-2, keepdim=True)
    query, key = query - center, key - center
    squares = 0.5 * query.square().sum(dim=-1).unsqueeze(-1) + 0.5 * key.square().sum(dim=-1).unsqueeze(-2)
    return query @ key.transpose(-2, -1) - squares


def learn(
    encoder: nn.Module,
    x: Tensor,
    value: Tensor,
    *,
    training: Tensor,
    validation: Tensor,
    loss: Loss,
    schedule: Schedule,
    generator: np.random.RandomState,
    progress: Progress | None = None,
) -> History:
    r"""Learn a map by the leave-one-out loss, and leave it as it was when the validation loss was lowest.

    .. math:: \frac{1}{|B|} \sum_{i \in B} L\Big(\sum_{j \neq i} \alpha_j(x_i)\, y_j,\ y_i\Big)
              + \text{penalty} \frac{\sum_{i \in B} |f(x_i) - f_0(x_i)|^2}{\sum_{i \in B} |f_0(x_i)|^2}

    Parameters
    ----------
    encoder : nn.Module
        f; changed in place.
    x : Tensor of shape (n, d)
        Rows.
    value : Tensor of shape (n, c)
        Outputs.
    training, validation : Tensor of int
        Which rows are queries and keys of gradient steps, and which are held out; these are predicted from the former.
    loss : callable
        ``(pooled, value) -> scalar``.
    schedule : Schedule
        How to learn.
    generator : numpy.random.RandomState
        For the order of rows and the keys that are drawn.
    progress : callable, optional
        Called as ``progress(done, total)``, in queries.

    Returns
    -------
    History
        Losses, and the best epoch.

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
    best, best_epoch = copy.deepcopy(encoder.state_dict()), 0
    total = schedule.max_epochs * len(training)
    with torch.no_grad():
        key = _some(training, schedule, generator)
        training_losses = [_loss_of(encoder, x, value, training, key, loss, schedule)]
        validation_losses = [_loss_of(encoder, x, value, validation, training, loss, schedule)]
    for epoch in range(1, schedule.max_epochs + 1):
        seen = 0.0
        for done, batch in _batches(training, schedule, generator):
            key = _some(training, schedule, generator)
            optimizer.zero_grad()
            error = _left_out_loss(encoder, x, value, batch, key, loss)
            seen += error.item() * len(batch)
            if not math.isfinite(seen):
                break
            if schedule.penalty:
                error = error + schedule.penalty * _displacement(encoder, start, x[batch])
            error.backward()
            optimizer.step()
            if progress is not None:
                progress((epoch - 1) * len(training) + done, total)
        with torch.no_grad():
            found = _loss_of(encoder, x, value, validation, training, loss, schedule)
        if not math.isfinite(seen + found):
            warn_caller(
                f"learning ended in epoch {epoch}, where the loss became infinite or NaN; what epoch {best_epoch} "
                f"found is kept. A learning_rate below {schedule.learning_rate:g} may go further",
            )
            break
        training_losses.append(seen / len(training))
        validation_losses.append(found)
        if found < validation_losses[best_epoch]:
            best, best_epoch = copy.deepcopy(encoder.state_dict()), epoch
        elif epoch - best_epoch >= schedule.patience:
            break
    encoder.load_state_dict(best)
    if progress is not None and total:
        progress(total, total)
    return History(np.array(training_losses), np.array(validation_losses), best_epoch)


def _left_out_loss(encoder: nn.Module, x: Tensor, value: Tensor, query: Tensor, key: Tensor, loss: Loss) -> Tensor:
    """Loss of rows predicted from others; a row is left out of its keys by its number."""
    others = query.unsqueeze(1) != key
    pooled = attention_pool(encoder(x[query]), encoder(x[key]), value[key], others, similarity=gaussian_by_product)
    return loss(pooled, value[query])


def _loss_of(
    encoder: nn.Module,
    x: Tensor,
    value: Tensor,
    query: Tensor,
    key: Tensor,
    loss: Loss,
    schedule: Schedule,
) -> float:
    """Loss of many rows, so many at a time as a step has."""
    parts = query.split(schedule.batch_size)
    return sum(_left_out_loss(encoder, x, value, part, key, loss).item() * len(part) for part in parts) / len(query)


def _displacement(encoder: nn.Module, start: nn.Module, x: Tensor) -> Tensor:
    before = start(x)
    length = before.square().mean().clamp_min(torch.finfo(before.dtype).tiny)
    moved: Tensor = (encoder(x) - before).square().mean() / length
    return moved


def _batches(training: Tensor, schedule: Schedule, generator: Any) -> Iterator[tuple[int, Tensor]]:
    """Yield how many rows are done after each batch, and the batch; batches are of nearly equal size."""
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
