"""Local likelihood: planes of a linear predictor around each query, for counts, amounts and shares.

Read `local_maximum.py` first: maxima of the local likelihood. `families.py` has the distributions, `moved_queries.py`
steps that are pools of a Gaussian, `criterion.py` the deviance that bandwidths are searched by, and
`likelihood_smoother.py` the fitted model with its errors.
"""
