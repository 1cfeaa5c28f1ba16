"""Estimators with a learned similarity: Nadaraya-Watson regression and classification, trained with torch.

Read `models.py` first: it is the only file.
"""
