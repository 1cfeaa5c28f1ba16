"""Compiled sums over pairs that the searches need."""
