"""Estimators with a learned similarity: Nadaraya-Watson regression and classification, trained with torch.

Read `models.py` first: the regressor and the classifier. `model_record.py` has their parameter ranges and the
contents of their files.
"""
