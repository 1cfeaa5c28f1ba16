"""Masks: what takes part, as torch's attention has it. Read `inputs.py` first."""

from kernpool.torch.masks.inputs import (
    at_least_single,
    check_dropout,
    check_inputs,
    check_tensors,
    without_autocast,
    without_infinity,
)
from kernpool.torch.masks.participants import Participants
from kernpool.torch.masks.softmax import masked_softmax

__all__ = [
    "Participants",
    "at_least_single",
    "check_dropout",
    "check_inputs",
    "check_tensors",
    "masked_softmax",
    "without_autocast",
    "without_infinity",
]
