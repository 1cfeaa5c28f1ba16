"""Compiled code that several algorithms use: exponentials, tiles of kernel values, and checks of results."""
