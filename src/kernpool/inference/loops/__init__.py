"""Compiled sums over pairs that variances of clustered rows need."""
