"""Resampling: random draws that do not depend on how data are split into blocks, and the bootstrap of a fit.

Read `random_draws.py` first: seeds, multipliers, resampled rows. `bootstrap.py` has the bootstrap, and the
fit as a linear map of the outputs.
"""
