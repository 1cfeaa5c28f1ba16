"""Compiled code of the sweep, by the file that calls it."""
