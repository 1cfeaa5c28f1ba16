"""The Python of the READMEs runs, and both tell the same."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_examples_run(name):
    for block in blocks(name):
        if "import torch" in block:
            pytest.importorskip("torch", reason="the last example needs the extra 'torch'")
        exec(block, {})


def test_both_languages_show_the_same_code():
    def code(name):
        return [re.sub(r" *#.*", "", block) for block in blocks(name)]

    assert code("README.md") == code("README.zh-CN.md")
    links = [
        set(re.findall(r"\]\(([^)]*)\)", (ROOT / name).read_text(encoding="utf-8"))) - {"README.md", "README.zh-CN.md"}
        for name in ("README.md", "README.zh-CN.md")
    ]
    assert links[0] - {"CHANGELOG.md"} == links[1]
    for link in links[0]:
        assert (ROOT / link).exists()
