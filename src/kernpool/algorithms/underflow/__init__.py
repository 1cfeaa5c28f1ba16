"""Fits and gradients at queries far from every key, from the dominant keys in extended precision.

There weights underflow, sums of offsets lose the local plane to rounding, and logits round by more than one. Read
`refit.py` first: local fits computed again from the keys of largest weight. `weighted_least_squares.py` solves them
for weights of any ratio, `dominant_pairs.py` finds the pairs with positive weight and their weights in extended
precision, and `gradients.py` differentiates over those pairs.
"""
