"""Functions of pairs, for the rows of Dask collections or of chunks on a cluster."""

from kernpool.dask import open_partitions


def of_partitions(function):
    """Return a function of queries, and of what `open_partitions` takes, by position, and its options by name."""
    names = ("target", "features", "key_weight", "client", "retries")

    def call(query, *rows, **options):
        opened = {name: options.pop(name) for name in names if name in options}
        return function(query, open_partitions(*rows, **opened), **options)

    return call
