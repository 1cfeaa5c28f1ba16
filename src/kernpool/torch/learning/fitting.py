"""From NumPy arrays to a learned similarity and back: where the estimators meet torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kernpool.execution.messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.torch.learning.encoders import MappedGaussianSimilarity, make_map, principal_start
from kernpool.torch.learning.training import History, Loss, Schedule, learn, log_loss, squared_error

Array = NDArray[np.float64]


def loss_of(name: str, value: torch.Tensor) -> Loss:
    """Return a loss by its name, for these outputs.

    Parameters
    ----------
    name : {"squared_error", "log_loss"}
        Which.
    value : Tensor of shape (n, c)
        Outputs; for the latter one-hot labels, whose means are the class priors.

    Returns
    -------
    callable
        ``(pooled, value) -> scalar``.
    """
    if name == "squared_error":
        return squared_error
    return partial(log_loss, prior=value.mean(dim=0), share=1.0 / (len(value) + 1))


@dataclass(frozen=True)
class Start:
    """Where learning starts.

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
    start: Start,
    *,
    rows: tuple[NDArray[np.intp], NDArray[np.intp]],
    loss: str,
    parameters: Mapping[str, Any],
    generator: np.random.RandomState,
    progress: Progress | None = None,
) -> tuple[MappedGaussianSimilarity, History]:
    """Learn a similarity from arrays; see `kernpool.torch.learning.training.learn`.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    value : ndarray of shape (n, c)
        Outputs.
    start : Start
        From where.
    rows : tuple of ndarray
        Numbers of the rows to learn from, and of those that are held out.
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
    training, validation = (torch.as_tensor(part, device=device) for part in rows)
    output = torch.tensor(value, dtype=dtype, device=device)
    history = learn(
        encoder,
        torch.tensor(X, dtype=dtype, device=device),
        output,
        training=training,
        validation=validation,
        loss=loss_of(loss, output),
        schedule=Schedule(**{name: parameters[name] for name in names}),
        generator=generator,
        progress=progress,
    )
    return MappedGaussianSimilarity(encoder.to("cpu", torch.float64)), history


def load_similarity(
    state: Mapping[str, Array], kind: str, columns: int, output_size: int | None, hidden_sizes: Any
) -> MappedGaussianSimilarity:
    """Make a similarity from the state of its map, whose names and shapes have been checked."""
    nothing = np.ones(columns)
    start = np.ones((columns if output_size is None else output_size, columns))
    encoder = make_map(kind, nothing, nothing, nothing, start=start, hidden_sizes=hidden_sizes)
    encoder.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return MappedGaussianSimilarity(encoder)


def similarity_state(similarity: MappedGaussianSimilarity) -> dict[str, Array]:
    """Return the state of a similarity's map as arrays."""
    return {name: tensor.numpy() for name, tensor in similarity.encoder.state_dict().items()}


def encode(similarity: MappedGaussianSimilarity, X: Array) -> Array:
    """Map rows to the space in which a Gaussian of width one compares them."""
    with torch.no_grad():
        encoded: Array = similarity.encoder(torch.tensor(X, dtype=torch.float64)).numpy()
    return encoded


def as_device(device: Any) -> torch.device:
    """Read a device, and be sure that it is there.

    Parameters
    ----------
    device : str, torch.device or None
        None is the CPU.

    Returns
    -------
    torch.device
        Where learning takes place.

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
    """Read a type of numbers, ``"float64"`` or ``"float32"``; None is the former on the CPU, the latter elsewhere."""
    if dtype is None:
        dtype = "float64" if device.type == "cpu" else "float32"
    found: torch.dtype = getattr(torch, dtype)
    return found
