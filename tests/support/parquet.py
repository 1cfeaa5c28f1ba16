"""Tables written as Parquet; tests that write them are skipped where pyarrow is not installed."""

import pytest


def write_parquet(path, columns, **options):
    """Write columns by name, as arrays, lists or arrays of Arrow."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra 'arrow'")
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path
