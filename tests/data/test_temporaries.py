"""A file is written whole or not at all, and one that is replaced passes its permissions on."""

import stat

import pytest

from kernpool.data.atomic_files import whole_file


def test_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(FileExistsError, match="force=True"), whole_file(path):
        pass
    with pytest.raises(TypeError), whole_file(path, force=True) as temporary:
        temporary.write_text(1)
    assert path.read_text() == "old"
    with whole_file(path, force=True) as temporary:
        temporary.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [path]
