"""The recipes for Ray and Spark run, with stand-ins for the packages."""

import pickle
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import kernpool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clusters.md"


def sent(thing):
    """What arrives elsewhere."""
    return pickle.loads(pickle.dumps(thing))


def stand_in(package):
    """A module in whose place the package would be: it computes here, and everything goes through pickle."""
    module = ModuleType(package)
    if package == "ray":
        module.put = module.get = sent
        module.remote = lambda function: SimpleNamespace(remote=lambda *given: sent(function(*sent(given))))
        return {"ray": module}

    def parallelize(parts, count):
        assert len(parts) == count
        return SimpleNamespace(
            map=lambda function: SimpleNamespace(collect=lambda: [sent(function(sent(part))) for part in parts])
        )

    context = SimpleNamespace(parallelize=parallelize, broadcast=lambda thing: SimpleNamespace(value=sent(thing)))
    sql = ModuleType("pyspark.sql")
    session = SimpleNamespace(sparkContext=context)
    sql.SparkSession = SimpleNamespace(builder=SimpleNamespace(getOrCreate=lambda: session))
    module.sql = sql
    return {"pyspark": module, "pyspark.sql": sql}


@pytest.mark.parametrize("package", ["ray", "pyspark"])
def test_recipes(package, tmp_path, monkeypatch, generator):
    parquet = pytest.importorskip("pyarrow.parquet", reason="files of the recipes need the extra 'arrow'")
    import pyarrow

    key, value, query = generator.random((1000, 2)), generator.random(1000), generator.random((20, 2))
    table = pyarrow.table({"a": key[:, 0], "b": key[:, 1], "y": value})
    parquet.write_table(table, tmp_path / "big.parquet", row_group_size=300)
    monkeypatch.chdir(tmp_path)
    for name, module in stand_in(package).items():
        monkeypatch.setitem(sys.modules, name, module)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    (code,) = [block for block in blocks if f"import {package}" in block]
    assert "rows=1_000_000" in code
    names = {"query": query}
    exec(code.replace("rows=1_000_000", "rows=300"), names)  # several parts
    assert len(names["parts"]) > 2
    expected = kernpool.pool(query, key, value, bandwidth=0.1)
    np.testing.assert_allclose(names["pooled"][:, 0], expected, rtol=0, atol=1e-12)
