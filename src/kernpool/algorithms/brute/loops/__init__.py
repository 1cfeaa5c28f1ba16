"""Compiled code of brute force, by the way that pairs are summed."""
