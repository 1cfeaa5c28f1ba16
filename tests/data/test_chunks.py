"""Pairs in chunks: every container, every cut, the numbers of memory; and what is said about bad ones."""

import functools
import itertools
import pickle
import re

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import SuspectColumnWarning, merge, open_chunks, pool
from kernpool.data import Chunk, Chunks, TableError
from kernpool.data.chunks.sources import reopen
from kernpool.pooling import QueryBatch, Recipe

pyarrow = pytest.importorskip("pyarrow", reason="Parquet and Arrow need the extra 'arrow'")
from pyarrow import parquet

from tests.support.thinning import thinned

ROWS = 3000


def table_of(generator, rows=ROWS):
    a, b = generator.random(rows), generator.integers(0, 9, rows)
    return {"a": a, "b": b, "y": np.sin(5 * a) + b + 1000.0, "w": generator.integers(0, 4, rows)}


def write(columns, path, **options):
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


@pytest.fixture
def containers(generator, tmp_path):
    """The same pairs, in everything that holds pairs."""
    columns = table_of(generator)
    table = pyarrow.table(columns)
    X, y, w = np.column_stack([columns["a"], columns["b"]]), columns["y"], columns["w"]
    folder = tmp_path / "folder"
    folder.mkdir()
    for i, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        some = {name: column[part] for name, column in columns.items()}
        write(some, folder / f"part-{i}.parquet", row_group_size=400)
    np.save(tmp_path / "matrix.npy", np.column_stack(list(columns.values())))
    named = np.zeros(ROWS, dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        named[name] = column
    np.save(tmp_path / "named.npy", named)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(np.float64))
    cuts = [slice(0, 1), slice(1, 1), slice(1, 2000), slice(2000, None)]
    by_name = {"target": "y", "features": ["a", "b"], "weight": "w"}
    sources = {
        "Parquet file": (write(columns, tmp_path / "one.parquet", row_group_size=700), by_name),
        "Parquet folder": (folder, by_name),
        "matrix": (tmp_path / "matrix.npy", {"target": "2", "features": ["0", "1"], "weight": "3"}),
        "named columns": (tmp_path / "named.npy", by_name),
        "memory maps": (
            np.load(tmp_path / "X.npy", mmap_mode="r"),
            {"value": np.load(tmp_path / "y.npy", mmap_mode="r"), "weight": w},
        ),
        "arrow": (table, by_name),
        "pandas": (pandas.DataFrame(columns), by_name),
        "polars": (polars.DataFrame(columns), by_name),
        "list": ([(X[cut], y[cut], w[cut]) for cut in cuts], {}),
    }
    return X, y, w, sources


KINDS = [
    "Parquet file", "Parquet folder", "matrix", "named columns", "memory maps", "arrow", "pandas", "polars", "list",
]  # fmt: skip


# Rows of 7 are 429 chunks.
@pytest.mark.parametrize(
    ("case", "kind"),
    thinned([(0, None), (0, 7), (0, 999), (1, None), (1, 7), (1, 999)], KINDS, [(0, None), (1, 999)]),
)
def test_every_container_has_the_numbers_of_memory(case, kind, containers, generator):
    degree, rows = case
    X, y, w, sources = containers
    source, options = sources[kind]
    query = np.column_stack([generator.random(20), generator.integers(0, 9, 20)])
    expected = pool(query, X, y, bandwidth=[0.2, 2.0], key_weight=w, degree=degree)
    chunks = open_chunks(source, **options, rows=rows)
    for _ in range(2):  # one can go through them again
        found = pool(query, chunks, bandwidth=[0.2, 2.0], degree=degree)
        assert_allclose(found, expected, rtol=1e-12)
    sizes = [len(chunk.key) for chunk in chunks]
    assert sum(sizes) == ROWS
    assert rows is None or max(sizes) <= rows


@given(st.lists(st.integers(0, 200), max_size=6), st.randoms(use_true_random=False))
def test_any_cut_and_any_order_of_merging(cuts, random):
    generator = np.random.default_rng(0)
    key, value, query = generator.random((200, 2)), generator.normal(size=200), generator.random((7, 2))
    edges = [0, *sorted(cuts), 200]
    asked = QueryBatch.of(Recipe.of(bandwidth=0.1), query)
    parts = [Chunk(key[a:b], value[a:b, None]) for a, b in itertools.pairwise(edges) if a < b]
    states = [asked.state(part, np.zeros(1)) for part in parts]
    random.shuffle(states)
    found = functools.reduce(merge, states).finalize()[:, 0]
    assert_allclose(found, pool(query, key, value, bandwidth=0.1), rtol=0, atol=1e-12)


def assert_as_in_memory(query, key, value, rows, **options):
    found = pool(query, open_chunks(key, value, rows=rows), **options)
    assert_allclose(found, pool(query, key, value, **options), rtol=1e-12)


def test_values_of_very_different_size_keep_their_digits(generator):
    """The first chunks of a sorted file may be a billion times as large as what a query sees."""
    for rows, n in ((500, 4000), (9000, 60_000)):  # merged, and in one pass
        key = np.sort(generator.random(n))
        value = np.where(key < 0.25, 1e9, np.sin(5 * key) + 2)
        assert_as_in_memory([0.8, 0.9], key, value, rows, bandwidth=0.05, kernel="epanechnikov")
    assert_as_in_memory([0.3, 0.6], key[::20], 1e9 + key[::20], 500, bandwidth=0.1, degree=1)  # small differences


@pytest.mark.parametrize("rows", [7402, 1000])
@pytest.mark.parametrize("h", [10.0, 59.38126276521873])
def test_nearest_keys_that_are_tied_in_several_chunks(h, rows, generator):
    query = np.concatenate([[-232.56547986, -174.33657875547294, -1781.43788296], 1e4 * generator.normal(size=20)])
    key, value = np.arange(9000) % 20 * 1.0, (np.arange(9000) >= 7402) * 1.0
    assert_as_in_memory(query, key, value, rows, bandwidth=h, kernel="boxcar", empty="nearest")


def test_an_iterator_is_gone_through_once(generator):
    key, value = generator.random(50), generator.random(50)
    pairs = ((key[i : i + 10], value[i : i + 10]) for i in range(0, 50, 10))
    assert_allclose(pool([0.5], pairs), pool([0.5], key, value), rtol=1e-13)
    once = iter([(key, value)])
    with pytest.raises(ValueError, match="an iterator does not allow"):
        pool([50.0], once, kernel="boxcar", empty="nearest")


def test_progress_counts_pairs(generator):
    seen = []
    for key in (generator.random(1000), generator.random((1000, 2))):
        pool(
            key[:5],
            open_chunks(key, key[..., None] if key.ndim == 1 else key, rows=300),
            progress=lambda *at: seen.append(at),
        )
    assert seen == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)] * 2


def test_a_chunk_without_weight_and_one_without_rows(generator):
    key, value = generator.random(20), generator.random(20)
    pairs = [(key[:0], value[:0]), (key[:9], value[:9], np.zeros(9)), (key[9:], value[9:], np.ones(11))]
    assert_allclose(pool([0.5], pairs), pool([0.5], key[9:], value[9:]), rtol=1e-13)
    for nothing in ([], [(key[:0], value[:0])]):
        with pytest.raises(ValueError, match="no pairs of positive weight"):
            pool([0.5], nothing)


def test_bad_files(generator, tmp_path):
    columns = table_of(generator)
    path = write(columns, tmp_path / "t.parquet", row_group_size=500, compression="zstd")
    whole = path.read_bytes()
    for content, words in ((whole[:-1000], "is truncated"), (whole[:200] + bytes(2800) + whole[3000:], "")):
        path.write_bytes(content)
        with pytest.raises(TableError, match=f"{re.escape(str(path))}.*{words}"):
            pool([[0.5, 1.0]], open_chunks(path, target="y", features=["a", "b"]))
    for bad in (np.nan, np.inf, None):
        cells = columns["a"].tolist()
        cells[1234] = bad
        write(columns | {"a": pyarrow.array(cells, pyarrow.float64())}, path, row_group_size=500)
        with pytest.raises(TableError, match=f"row group 2, row 1234, column 'a' is {np.float64(bad)}"):
            pool([[0.5, 1.0]], open_chunks(path, target="y", features=["a", "b"], rows=100))
    np.save(tmp_path / "t.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    for folder, other, words in (
        ("of two types", columns | {"y": columns["y"].astype(np.float32)}, r"b\.parquet: column 'y' holds float, and"),
        ("of two lengths", {"a": columns["a"]}, r"b\.parquet: no column 'b', which .*a\.parquet has"),
    ):
        (tmp_path / folder).mkdir()
        write(columns, tmp_path / folder / "a.parquet")
        write(other, tmp_path / folder / "b.parquet")
        with pytest.raises(TableError, match=words):
            open_chunks(tmp_path / folder, target="y")
    write(columns | {"name": ["x"] * ROWS}, path)
    (tmp_path / "empty").mkdir()
    for source, options, words in (
        (path, {"target": "z"}, "no column 'z'; columns are 'a', 'b', 'y', 'w', 'name'"),
        (path, {"target": "y"}, "column 'name' holds string, not real numbers"),
        (path, {"target": "y", "features": ["a", "y"]}, "each column once"),
        (path, {}, "target must name"),
        (tmp_path / "t.npy", {"target": "0"}, "Python objects"),  # which are never unpickled
        (tmp_path / "empty", {"target": "y"}, r"no file whose name ends in \.parquet"),
        (tmp_path / "none.parquet", {"target": "y"}, "does not exist"),
        (np.zeros(3), {}, "source must be a file"),
    ):
        with pytest.raises((TableError, TypeError, FileNotFoundError), match=words):
            open_chunks(source, **options)


KEYS = [np.zeros(3), [0.0, 1.0], [[0.0, 1.0], [2.0, 3.0]], [np.zeros(2), np.ones(2)], range(3), None]


def test_what_is_no_list_of_pairs_says_what_to_give(generator, tmp_path):
    path = write(table_of(generator), tmp_path / "t.parquet")
    one, frame = [([1.0], [1.0])], {"a": [0.0, 1.0]}
    for key, options, words in (
        ([([1.0], [1.0, 2.0])], {}, "chunk 0"),
        ([(["a"], [1.0])], {}, "chunk 0"),
        ([([0.0, 1.0], [1.0, 2.0]), ([2.0], [[3.0]])], {}, "chunk 1 has keys and values of"),
        ([([0.0, 1.0], [1.0, 2.0]), ([[2.0, 1.0]], [3.0])], {}, "chunk 1 has keys and values of"),
        (iter([1.0]), {}, r"chunk 0 must be a tuple .* value="),
        ([([1.0], [1.0], [1.0], [1.0])], {}, r"chunk 0 must be a tuple .* value="),
        (one, {"exclude_self": True}, "chunks bring their own weights"),
        (path, {}, "open it with open_chunks"),
        (([[0.0], [1.0]], [[1.0], [2.0]]), {}, "source must be a file"),
        (pandas.DataFrame(frame), {}, r"value is missing.*target="),
        (polars.Series(frame["a"]), {}, r"value is missing.*target="),
        *((key, {}, r"value is missing.*chunks.*open_chunks") for key in KEYS),
        (0.5, {"key_weight": np.ones(3)}, r"value is missing.*chunks.*open_chunks"),
    ):
        with pytest.raises((TableError, TypeError, ValueError), match=words):
            pool([0.5], key, **options)


def test_files_that_have_changed_are_told(generator, tmp_path):
    write(table_of(generator), tmp_path / "a.parquet")
    np.save(tmp_path / "t.npy", generator.random((50, 2)))
    references = [
        open_chunks(path, target=name).reference() for path, name in ((tmp_path, "y"), (tmp_path / "t.npy", "1"))
    ]
    assert [isinstance(reopen(reference), Chunks) for reference in references] == [True, True]
    np.save(tmp_path / "t.npy", generator.random((50, 2)))
    with pytest.raises(TableError, match="not the file that the model was fitted to"):
        reopen(references[1])
    write(table_of(generator), tmp_path / "b.parquet")
    with pytest.raises(TableError, match=r"b\.parquet was not there"):
        reopen(references[0])
    (tmp_path / "t.npy").unlink()
    with pytest.raises(TableError, match="does not exist"):
        reopen(references[1])


@pytest.mark.parametrize("degree", [0, 1])
def test_rows_without_weight_decide_nothing(degree, generator):
    key, value = generator.random(30), generator.random(30)
    pairs = [(key, np.full(30, 1e20), np.zeros(30)), (key, value, np.ones(30))]
    assert_allclose(pool([0.5], pairs, degree=degree), pool([0.5], key, value, degree=degree), rtol=1e-12)
    for empty in ("nan", "nearest", "mean"):
        with pytest.raises(ValueError, match="no pairs of positive weight"):
            pool([0.5], pairs[:1], degree=degree, empty=empty)


def test_values_out_of_range_are_refused_in_later_chunks_too(generator):
    key, value = generator.random(60_000), np.ones(60_000)
    value[10_000:] = 1.7e308
    with pytest.raises(ValueError, match="beyond 1e\\+150"):
        pool([0.2, 0.5], open_chunks(key, value, rows=7000), bandwidth=0.1)


def test_labels_of_rows_are_no_keys(generator, tmp_path):
    frame = pandas.DataFrame(table_of(generator, 50)).query("a > 0.1")
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_chunks(frame, target="y").names == ("a", "b", "w")
    with pytest.warns(SuspectColumnWarning, match="column '__index_level_0__' holds labels of rows"):
        assert open_chunks(tmp_path / "t.parquet", target="y").names == ("a", "b", "w")
    frame.set_index("w").to_parquet(tmp_path / "named.parquet")
    with pytest.warns(SuspectColumnWarning, match="column 'w' holds labels of rows"):
        assert open_chunks(tmp_path / "named.parquet", target="y").names == ("a", "b")
    assert open_chunks(tmp_path / "named.parquet", target="y", features=["a", "w"]).names == ("a", "w")
    assert open_chunks(frame, target="y", features=["__index_level_0__"]).names == ("__index_level_0__",)


def partitioned(generator, folder, letters):
    """Write a folder that is partitioned by a column, and return the rows in the order of its files."""
    columns = table_of(generator, 90) | {"part": np.array(letters)[np.arange(90) % len(letters)]}
    parquet.write_to_dataset(pyarrow.table(columns), folder, partition_cols=["part"])
    order = np.argsort(columns["part"].astype(str), kind="stable")
    return {name: column[order] for name, column in columns.items()}


@pytest.mark.parametrize("letters", [[3, 1, 2], ["x", "y z", "a/b"]])
def test_a_folder_that_is_partitioned_has_that_column(letters, generator, tmp_path):
    rows = partitioned(generator, tmp_path / "t", letters)
    features = ["a", "b"]
    if isinstance(letters[0], str):
        with pytest.raises(TableError, match="column 'part' holds string, not real numbers"):
            open_chunks(tmp_path / "t", target="y")
    else:
        features.append("part")
        assert open_chunks(tmp_path / "t", target="y").names == ("a", "b", "w", "part")
    found = open_chunks(tmp_path / "t", target="y", features=features, rows=25)
    key = np.column_stack([rows[name] for name in features])
    for some in (found, [chunk for part in pickle.loads(pickle.dumps(found.parts())) for chunk in part]):
        read = np.concatenate([chunk.key for chunk in some])
        order, expected = np.lexsort(read.T), np.lexsort(key.T)
        assert_array_equal(read[order], key[expected])
    reference = found.reference()
    assert reopen(reference).rows == 90
    sorted((tmp_path / "t").rglob("*.parquet"))[-1].unlink()
    with pytest.raises(TableError, match=r"part=.*is missing"):
        reopen(reference)


def test_a_path_holds_in_other_folders(generator, tmp_path, monkeypatch):
    write(table_of(generator), tmp_path / "t.parquet")
    np.save(tmp_path / "t.npy", generator.random((9, 2)))
    monkeypatch.chdir(tmp_path)
    chunks = [open_chunks("t.parquet", target="y"), open_chunks("t.npy", target="1")]
    monkeypatch.chdir("/")
    assert [sum(len(chunk.key) for chunk in one) for one in chunks] == [ROWS, 9]
