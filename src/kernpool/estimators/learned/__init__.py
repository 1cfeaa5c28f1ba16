"""Estimators with a learned similarity: Nadaraya-Watson regression and classification, trained with torch.

Read `models.py` first. `columns.py` makes indicator columns of categorical ones, `parameters.py` has the valid ranges
of parameters, and `files.py` the contents of model files.
"""
