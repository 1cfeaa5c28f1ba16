"""Softmax over the valid keys only."""

from __future__ import annotations

import torch
from torch import Tensor

from kernpool.torch.masks.inputs import as_tensor, check_tensors


def valid_length_mask(valid_lens: Tensor, shape: torch.Size) -> Tensor:
    """Turn valid lengths into a mask of shape (..., L, S), True where ``key index < length``.

    Parameters
    ----------
    valid_lens : Tensor of int
        One length per sequence, shape (...), or one per query, shape (..., L).
    shape : torch.Size
        Shape (..., L, S) of the logits.

    Returns
    -------
    Tensor of bool
        Broadcastable to `shape`.

    Raises
    ------
    ValueError
        If the lengths are no integers, fit neither the sequences nor the queries, or are negative or larger than the
        number of keys.

    Notes
    -----
    The range check reads two numbers from the device of the lengths. While torch compiles, and on the device "meta",
    there are none to read; under ``torch.func.vmap`` they cannot be read, so map over a mask instead.
    """
    lengths = valid_lengths(valid_lens, shape)
    return torch.arange(shape[-1], device=lengths.device) < lengths[..., None]


def valid_lengths(valid_lens: Tensor, shape: torch.Size) -> Tensor:
    """Check valid lengths, and return them as one per query, or one for all queries of a sequence.

    Parameters
    ----------
    valid_lens, shape
        As for `valid_length_mask`, which says what is refused.

    Returns
    -------
    Tensor of int, shape (..., L) or (..., 1)
        The lengths.
    """
    valid_lens = as_tensor("valid_lens", valid_lens)
    if valid_lens.is_floating_point() or valid_lens.is_complex() or valid_lens.dtype == torch.bool:
        raise ValueError(f"valid_lens must be integers, got {valid_lens.dtype}; pass a boolean mask as attn_mask")
    batch = tuple(shape[:-2])
    if tuple(valid_lens.shape) == batch:
        lengths = valid_lens[..., None]
    elif tuple(valid_lens.shape) == tuple(shape[:-1]):
        lengths = valid_lens
    else:
        raise ValueError(
            f"valid_lens must have shape {batch} (one length per sequence) or {tuple(shape[:-1])} (one per query), "
            f"got {tuple(valid_lens.shape)}"
        )
    _check_range(valid_lens, shape[-1])
    return lengths


def _check_range(valid_lens: Tensor, keys: int) -> None:
    if torch.compiler.is_compiling() or valid_lens.is_meta or valid_lens.numel() == 0:
        return
    for wrong in (int(end) for end in torch.aminmax(valid_lens)):
        if not 0 <= wrong <= keys:
            raise ValueError(f"valid_lens must be between 0 and the number of keys, {keys}, got {wrong}")


def masked_softmax(logits: Tensor, valid: Tensor | None = None) -> Tensor:
    r"""Softmax over the last axis, restricted to valid entries.

    .. math:: \alpha_j = [j \text{ valid}]\, e^{s_j} \Big/ \sum_{l \text{ valid}} e^{s_l}

    Parameters
    ----------
    logits : Tensor of shape (..., L, S)
        Scores of S keys for L queries. Never changed.
    valid : Tensor, optional
        Which entries count: a boolean mask that broadcasts to the logits, True where valid; or integer *lengths*, one
        per sequence, shape (...), or one per query, shape (..., L). None means all.

    Returns
    -------
    Tensor of shape (..., L, S)
        Each row sums to one; a row without a valid entry, or with no logit above minus infinity, is zero, with zero
        gradient.

    Raises
    ------
    ValueError
        If `valid` fits the logits in neither way.
    TypeError
        If one of them is a nested or a sparse tensor.

    Notes
    -----
    Invalid entries become minus infinity, not a large negative number: with the widespread -1e6 a fully masked row
    attends to the padding, and in half precision it is NaN. NaN in an invalid entry does not spread.

    Examples
    --------
    >>> import torch
    >>> masked_softmax(torch.zeros(2, 1, 4), torch.tensor([2, 0])).tolist()
    [[[0.5, 0.5, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0]]]
    """
    check_tensors(logits=logits)
    if valid is not None:
        logits = logits.masked_fill(~_as_mask(as_tensor("valid", valid, logits.device), logits.shape), -torch.inf)
    if logits.shape[-1] == 0:
        return torch.softmax(logits, dim=-1)
    nothing = torch.isneginf(logits.detach().amax(dim=-1, keepdim=True))
    # A row without a valid entry gets finite logits and is zeroed afterwards: softmax of minus infinities is NaN, and a
    # NaN that is masked only afterwards still spoils the gradient.
    weights = torch.softmax(logits.masked_fill(nothing, 0.0), dim=-1)
    return weights.masked_fill(nothing, 0.0)


def _as_mask(valid: Tensor, shape: torch.Size) -> Tensor:
    if valid.dtype != torch.bool:
        return valid_length_mask(valid, shape)
    try:
        return valid.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"a boolean mask must broadcast to the logits' shape {tuple(shape)}, got {tuple(valid.shape)}"
        ) from None
