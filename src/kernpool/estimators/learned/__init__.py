"""Estimators that learn the similarity, with torch. Read `base.py` first."""
