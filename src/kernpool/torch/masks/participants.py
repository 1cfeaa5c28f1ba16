"""Which keys take part for which queries: masks, lengths, causality and leave-one-out, as one thing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernpool.torch.masks.inputs import check_mask_shape
from kernpool.torch.masks.softmax import valid_lengths


@dataclass(frozen=True)
class Participants:
    """Which keys take part for which queries of one `attention_pool`; the conditions combine.

    Parameters
    ----------
    shape : torch.Size
        Shape (..., L, S) of the logits.
    device : torch.device
        Where masks are made.
    attn_mask : Tensor or None
        Boolean, or floating point, where minus infinity leaves out.
    lengths : Tensor or None
        Numbers of valid keys, of shape (..., L) or (..., 1).
    is_causal, exclude_self : bool
        See `attention_pool`.
    """

    shape: torch.Size
    device: torch.device
    attn_mask: Tensor | None
    lengths: Tensor | None
    is_causal: bool
    exclude_self: bool

    @classmethod
    def check(
        cls,
        shape: torch.Size,
        device: torch.device,
        attn_mask: Tensor | None,
        valid_lens: Tensor | None,
        is_causal: bool,
        exclude_self: bool,
    ) -> Participants:
        """Make one of what the caller passed, or say what is wrong."""
        queries, keys = shape[-2:]
        if attn_mask is not None:
            attn_mask = torch.atleast_2d(attn_mask)
            check_mask_shape(attn_mask, shape)
        if exclude_self and queries != keys:
            raise ValueError(f"exclude_self=True takes key i for query i's own, but there are {queries} and {keys}")
        lengths = None if valid_lens is None else valid_lengths(valid_lens, shape).to(device)
        return cls(shape, device, attn_mask, lengths, is_causal, exclude_self)

    @property
    def adds_to_logits(self) -> bool:
        """Whether the mask is one of floating-point numbers."""
        return self.attn_mask is not None and self.attn_mask.dtype != torch.bool

    @property
    def batch(self) -> torch.Size:
        """Leading dimensions of the pairs."""
        leading = [self.shape[:-2]] + ([] if self.attn_mask is None else [self.attn_mask.shape[:-2]])
        batch: torch.Size = torch.broadcast_shapes(*leading)
        return batch

    def among(self, queries: slice) -> Participants:
        """Return those of some of the queries; `mask` finds their places for causality and leave-one-out."""
        table = None if self.attn_mask is None else rows_of(self.attn_mask, queries)
        lengths = self.lengths if self.lengths is None or self.lengths.shape[-1] == 1 else self.lengths[..., queries]
        return Participants(self.shape, self.device, table, lengths, self.is_causal, self.exclude_self)

    def mask(self, queries: slice = slice(None)) -> Tensor | None:
        """Return a boolean mask that broadcasts to the logits of these queries, which `among` has cut out."""
        query = torch.arange(self.shape[-2], device=self.device)[queries, None]
        key = torch.arange(self.shape[-1], device=self.device)
        parts = []
        if self.attn_mask is not None:
            parts.append(~torch.isneginf(self.attn_mask) if self.adds_to_logits else self.attn_mask)
        if self.lengths is not None:
            parts.append(key < self.lengths[..., None])
        if self.is_causal:
            parts.append(key <= query)
        if self.exclude_self:
            parts.append(key != query)
        if not parts:
            return None
        mask = parts[0]
        for part in parts[1:]:
            mask = mask & part
        logits = torch.Size([*self.shape[:-2], query.shape[0], self.shape[-1]])  # len() would end its being symbolic
        return mask.expand(torch.broadcast_shapes(mask.shape, logits))

    def counts(self) -> Tensor | None:
        """Return how many of the first keys each query sees, as far as lengths and causality say; (..., L) or (L,)."""
        counts = self.lengths
        if self.is_causal:
            seen = torch.arange(1, self.shape[-2] + 1, device=self.device).clamp(max=self.shape[-1])
            counts = seen if counts is None else torch.minimum(counts, seen)
        return counts


def rows_of(table: Tensor, queries: slice) -> Tensor:
    """Cut the second last dimension, unless it is one for all."""
    return table if table.shape[-2] == 1 else table[..., queries, :]
