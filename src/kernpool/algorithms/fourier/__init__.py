"""Gaussian sums by a nonuniform Fourier transform, certified query by query. Read `nufft.py` first."""
