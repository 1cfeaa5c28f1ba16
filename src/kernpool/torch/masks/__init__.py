"""Masks: what takes part, as torch's attention has it. Read `inputs.py` first."""
