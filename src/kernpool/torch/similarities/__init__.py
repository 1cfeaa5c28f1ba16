"""Similarities that can learn: by distance (`distance.py`) and by score (`scores.py`)."""
