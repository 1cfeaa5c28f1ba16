"""Queries far from every key: weights, planes and gradients from the few keys that count, with extra digits.

Sums of offsets lose a plane there, and logits round by more than one. Read `keys.py` for fits, `gradients.py` for
gradients.
"""
