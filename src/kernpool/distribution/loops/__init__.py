"""Compiled search for the key at which the weights of a query reach a sum."""
