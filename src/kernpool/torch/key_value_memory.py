"""Key-value memory: rows that can be appended, evicted and pooled over, as a torch module.

It is Nadaraya-Watson regression that learns by storing observations.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from kernpool.execution.error_messages import explain_calls
from kernpool.execution.threads import OwnLock
from kernpool.torch.dispatch import Similarity
from kernpool.torch.masks import check_tensors
from kernpool.torch.pooling import AttentionPooling, attention_pool

SAVED = ("key", "value", "position", "appended")
MOST_APPENDED = 1 << 53


class _Snapshot(NamedTuple):
    """Snapshot of the memory: its rows, their positions in order of appending, and the number of rows ever appended."""

    key: Tensor
    value: Tensor
    position: Tensor
    appended: int

    @property
    def age(self) -> Tensor:
        """Age of each row: the number of rows appended after it."""
        return self.appended - 1 - self.position


@explain_calls
class KeyValueMemory(nn.Module):
    r"""Memory of keys and values to which rows can be appended, for online Nadaraya-Watson regression.

    .. math:: \hat y(q) = \sum_j \operatorname{softmax}_j\bigl(s(q, k_j) - a_j \log(2) / \tau\bigr)\, v_j

    with the age :math:`a_j` of row j, which is how many rows were appended after it, and the half-life :math:`\tau`.

    Parameters
    ----------
    key_size, value_size : int
        Columns of keys and values.
    pooling : AttentionPooling, optional
        Pools over the rows unless `forward` is given a similarity.
    capacity : int, optional
        The most rows it holds; the oldest go when new ones come. None is no limit.
    half_life : float, optional
        An old row weighs half as much as one that was appended this many rows later, at equal similarity. None is no
        decay. It is for data that drift: with a stationary relation forgetting only costs precision.
    device, dtype
        As for any module; what is appended must have them.

    Attributes
    ----------
    key, value : Tensor of shape (rows, key_size) and (rows, value_size)
        What it holds, the oldest row first. No copies, so leave them as they are.
    age : Tensor of int of shape (rows,)
        Rows that were appended after each.

    Raises
    ------
    ValueError
        If a size or the capacity is below one, or the half-life is not positive and finite, or `pooling` cannot do it.
    TypeError
        If `pooling` is no `AttentionPooling`.

    See Also
    --------
    AttentionPooling : The same over keys and values that are given with each call.

    Notes
    -----
    Threads may append, evict and ask at once: changes wait for each other, none is lost, and what is asked is answered
    from the rows before or after a change.

    Rows are copied in, without their gradient; gradients reach queries and the similarity. The copy is into space held
    in reserve, which doubles when it is full: n rows take O(n) time however they come, and at most twice the space of
    the most rows it held at once. Rows that a gradient may still need are never written over, so that one may append
    between a forward and its backward pass.

    The `state_dict` holds the rows, their positions in the order of appending and the count of all rows ever appended,
    and loads into a memory of any number of rows; if it exceeds the capacity there, the newest rows are kept. A state
    with rows that `append` would refuse, or with positions that no appending gives, is refused with a RuntimeError, and
    the memory stays as it was. Capacity and half-life are configuration, and not part of it.

    Examples
    --------
    >>> import torch
    >>> from kernpool.torch import AttentionPooling, GaussianSimilarity
    >>> memory = KeyValueMemory(1, 1, pooling=AttentionPooling(GaussianSimilarity(0.1)), capacity=2)
    >>> memory(torch.tensor([[3.0]])).item()
    0.0
    >>> memory.append(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[10.0], [20.0], [30.0]]))
    >>> len(memory), memory(torch.tensor([[3.0], [1.0]])).tolist()
    (2, [[30.0], [20.0]])
    """

    _keys: Tensor
    _values: Tensor
    _positions: Tensor

    def __init__(
        self,
        key_size: int,
        value_size: int,
        *,
        pooling: AttentionPooling | None = None,
        capacity: int | None = None,
        half_life: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, number in (("key_size", key_size), ("value_size", value_size), ("capacity", capacity)):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        if half_life is not None and not (math.isfinite(half_life) and half_life > 0):
            raise ValueError(f"half_life must be a positive, finite number of rows, got {half_life}")
        if half_life is not None and pooling is not None and (pooling.degree or pooling.algorithm == "fused"):
            raise ValueError(
                "half_life adds to the logits, which local linear and fused layers do not take; use "
                "AttentionPooling(degree=0, algorithm='auto')"
            )
        if pooling is not None and not isinstance(pooling, AttentionPooling):
            raise TypeError(
                f"pooling must be an AttentionPooling, got {type(pooling).__name__}; a similarity alone goes into "
                "AttentionPooling(similarity), or into memory(query, similarity=...)"
            )
        self.key_size, self.value_size = key_size, value_size
        self.pooling, self.capacity, self.half_life = pooling, capacity, half_life
        # Rows first to last of the buffers are in use; what comes before is forgotten, what comes after is reserve.
        self.register_buffer("_keys", torch.empty(0, key_size, device=device, dtype=dtype), persistent=False)
        self.register_buffer("_values", torch.empty(0, value_size, device=device, dtype=dtype), persistent=False)
        self.register_buffer("_positions", torch.empty(0, dtype=torch.int64, device=device), persistent=False)
        self._first, self._last, self._appended = 0, 0, 0
        self._changing = OwnLock()

    def __len__(self) -> int:
        return len(self.key)

    @property
    def key(self) -> Tensor:
        """Stored keys, the oldest first."""
        return self._snapshot().key

    @property
    def value(self) -> Tensor:
        """Stored values, the oldest first."""
        return self._snapshot().value

    @property
    def age(self) -> Tensor:
        """Age of each stored row: the number of rows appended after it."""
        return self._snapshot().age

    def _snapshot(self) -> _Snapshot:
        """Return a snapshot of the memory that is consistent while other threads modify it."""
        if torch.compiler.is_compiling():  # in one thread, for which a lock is no tensor
            return self._in_use()
        with self._changing:
            return self._in_use()

    def _in_use(self) -> _Snapshot:
        used = slice(self._first, self._last)
        return _Snapshot(self._keys[used], self._values[used], self._positions[used], self._appended)

    @torch.inference_mode(False)  # what it holds may be trained over later
    def append(self, key: Tensor, value: Tensor) -> None:
        """Append copies of keys and values as the newest rows; beyond the capacity, evict the oldest.

        Parameters
        ----------
        key : Tensor of shape (rows, key_size)
            Finite, of the memory's dtype and on its device.
        value : Tensor of shape (rows, value_size)
            As many rows, as the keys.

        Raises
        ------
        ValueError
            If shapes, numbers of rows or devices differ, or an entry is NaN or infinite. Nothing is appended then.
        TypeError
            If it is no tensor, or of another dtype.
        """
        _check_rows("key", key, self._keys)
        _check_rows("value", value, self._values)
        if len(key) != len(value):
            raise ValueError(f"key has {len(key)} rows and value has {len(value)}; each key needs its value")
        with self._changing:
            last = self._appended + len(key)
            self._put(key, value, torch.arange(self._appended, last, device=self._positions.device), last)

    @torch.inference_mode(False)
    def evict(self, rows: int | Tensor) -> None:
        """Remove the oldest rows, or the rows that a mask selects.

        Parameters
        ----------
        rows : int or Tensor of bool of shape (len(memory),)
            How many of the oldest, or which: True is forgotten. Ages of the others stay what they are.

        Raises
        ------
        ValueError
            If the count is negative or more than there are, or the mask of another shape.
        TypeError
            If it is neither a count nor a boolean tensor.
        """
        with self._changing:
            self._evict(rows)

    @torch.inference_mode(False)
    def reset(self) -> None:
        """Remove all rows from the memory and set the count of appended rows to zero."""
        with self._changing:
            self._reset()

    def forward(
        self, query: Tensor, *, similarity: Similarity | None = None, return_weights: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Pool the stored values, weighted by the similarity of their keys to each query.

        Parameters
        ----------
        query : Tensor of shape (..., L, Eq)
            Queries, of the memory's dtype.
        similarity : callable, optional
            ``(query, key) -> logits``, in place of the pooling that the memory was made with.
        return_weights : bool, default=False
            Return the weights over its rows too, of shape (..., L, rows).

        Returns
        -------
        Tensor of shape (..., L, value_size), or a tuple of it and the weights
            Zero where no row is within the support of the kernel, and while the memory is empty.

        Raises
        ------
        ValueError, TypeError
            If there is nothing to pool with; and as in `attention_pool`.
        """
        held, age_weight = self._snapshot(), None
        if self.half_life is not None:
            precise = torch.promote_types(held.key.dtype, torch.float32)
            age_weight = held.age.to(precise).mul(-math.log(2.0) / self.half_life).unsqueeze(0)
        if similarity is not None:
            return attention_pool(
                query, held.key, held.value, age_weight, similarity=similarity, return_weights=return_weights
            )
        if self.pooling is None:
            raise ValueError("nothing to pool with; pass similarity=, or make the memory with pooling=AttentionPooling")
        pooled: Tensor | tuple[Tensor, Tensor] = self.pooling(
            query, held.key, held.value, age_weight, return_weights=return_weights
        )
        return pooled

    def extra_repr(self) -> str:
        """Return the sizes of keys and values and the number of stored rows, for ``repr``."""
        limits = "".join(
            f", {name}={limit}" for name in ("capacity", "half_life") if (limit := getattr(self, name)) is not None
        )
        return f"key_size={self.key_size}, value_size={self.value_size}, rows={len(self)}{limits}"

    def _evict(self, rows: int | Tensor) -> None:
        held = self._in_use()
        count = len(held.key)
        if isinstance(rows, int) and not isinstance(rows, bool):
            if not 0 <= rows <= count:
                raise ValueError(f"cannot evict {rows} rows of {count}; give a number between 0 and len(memory)")
            self._first += rows
            return
        if not isinstance(rows, Tensor) or rows.dtype != torch.bool:
            found = f"a tensor of {rows.dtype}" if isinstance(rows, Tensor) else type(rows).__name__
            raise TypeError(f"rows must be a count or a boolean tensor, True where to forget, got {found}")
        if rows.shape != (count,):
            raise ValueError(f"rows must have shape ({count},), one entry per row, got {tuple(rows.shape)}")
        kept = ~rows.to(self._keys.device)
        self._replace(held.key[kept], held.value[kept], held.position[kept])

    def _reset(self) -> None:
        self._replace(self._keys[:0].clone(), self._values[:0].clone(), self._positions[:0].clone())
        self._appended = 0

    def _put(self, key: Tensor, value: Tensor, position: Tensor, appended: int) -> None:
        if self.capacity is not None:
            key, value, position = (tensor[-self.capacity :] for tensor in (key, value, position))
            self._first += max(0, self._last - self._first + len(key) - self.capacity)
        stop = self._last + len(key)
        if stop > len(self._keys):
            self._reserve(2 * (self._last - self._first + len(key)))
            stop = self._last + len(key)
        for buffer, rows in ((self._keys, key), (self._values, value), (self._positions, position)):
            # .data, since these rows are new to every graph: autograd would otherwise take a write behind the rows that
            # an earlier forward pass saw for a change of them, and refuse its backward pass.
            buffer.data[self._last : stop] = rows.detach()
        self._last, self._appended = stop, appended

    def _reserve(self, rows: int) -> None:
        """Copy the stored rows to the front of new buffers with the given number of rows."""
        used = self._last - self._first
        for name in ("_keys", "_values", "_positions"):
            old = getattr(self, name)
            new = old.new_zeros(rows, *old.shape[1:])
            new[:used] = old[self._first : self._last]
            setattr(self, name, new)
        self._first, self._last = 0, used

    def _replace(self, key: Tensor, value: Tensor, position: Tensor) -> None:
        self._keys, self._values, self._positions = key, value, position
        self._first, self._last = 0, len(key)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        held = self._snapshot()
        saved = (*held[:3], torch.tensor(held.appended))
        for name, tensor in zip(SAVED, saved, strict=True):
            destination[prefix + name] = tensor.clone()  # of a view the whole reserve would be written to disk

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        found = {name: state_dict.pop(prefix + name) for name in SAVED if prefix + name in state_dict}
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        if len(found) < len(SAVED):
            missing_keys.extend(prefix + name for name in SAVED if name not in found)
            return
        try:
            _check_saved(found, self)
        except (TypeError, ValueError) as error:
            error_msgs.append(f"rows of {prefix or 'the memory'} cannot be loaded, and stay as they are: {error}")
            return
        with self._changing:
            self._reset()
            self._put(found["key"], found["value"], found["position"], int(found["appended"]))


def _check_rows(name: str, rows: Tensor, buffer: Tensor) -> None:
    check_tensors(**{name: rows})
    if rows.dim() != 2 or rows.shape[1] != buffer.shape[1]:
        raise ValueError(
            f"{name} must have shape (rows, {buffer.shape[1]}), got {tuple(rows.shape)}; a single row is {name}[None]"
        )
    if rows.dtype != buffer.dtype:
        raise TypeError(f"{name} is in {rows.dtype}, the memory in {buffer.dtype}; convert one of them with .to(dtype)")
    if rows.device != buffer.device:
        raise ValueError(f"{name} is on {rows.device}, the memory on {buffer.device}; move one with .to(device)")
    finite = torch.isfinite(rows).all(dim=1)
    if not bool(finite.all()):
        first = int(torch.nonzero(~finite)[0])
        raise ValueError(f"{name} holds NaN or infinity in row {first}; drop or fill such rows first")


def _check_saved(saved: dict[str, Tensor], memory: KeyValueMemory) -> None:
    """Raise TypeError or ValueError if a saved state cannot be loaded into this memory."""
    check_tensors(**saved)
    key, value, position, appended = (saved[name] for name in SAVED)
    for name, rows in (("key", key), ("value", value)):
        if not rows.is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, got {rows.dtype}")
    for name, numbers in (("position", position), ("appended", appended)):
        if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
            raise TypeError(f"{name} must hold integers, got {numbers.dtype}")
    if position.dim() != 1 or appended.numel() != 1:
        raise ValueError(
            f"position must have shape (rows,) and appended be one number, got shapes {tuple(position.shape)} and "
            f"{tuple(appended.shape)}"
        )
    _check_rows("key", key.to(memory._keys), memory._keys)
    _check_rows("value", value.to(memory._values), memory._values)
    if not len(key) == len(value) == len(position):
        raise ValueError(
            f"there are {len(key)} keys, {len(value)} values and {len(position)} positions; one of each a row"
        )
    count, ends = int(appended), position[[0, -1]].tolist() if len(position) else [0, -1]
    increasing = bool((position[1:] > position[:-1]).all())
    if not (increasing and ends[0] >= 0 and ends[1] < count <= MOST_APPENDED):
        raise ValueError(
            "position must increase from 0 on, and be less than appended, the number of all rows ever appended, got "
            f"{position} and {count}"
        )
