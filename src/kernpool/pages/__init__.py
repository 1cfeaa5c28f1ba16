"""Self-contained pages: the tour."""
