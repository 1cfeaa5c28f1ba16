"""Training: encoders of columns, the loop, and what `fit` of the learned estimators calls."""
