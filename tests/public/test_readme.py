"""The Python of the READMEs runs, and both tell the same."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TRANSLATED = {"docs/zh/index.md": "docs/guides/index.md", "docs/zh/ten-minutes.md": "docs/ten-minutes.md"}


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
    assert links[0] - {"CHANGELOG.md"} == {TRANSLATED.get(link, link) for link in links[1]}
    for link in links[0] | links[1]:
        assert (ROOT / link).exists()


def prose(name):
    """The text without blocks of code, section by section; the level and the words of its heading with each."""
    text = re.sub(r"```.*?```", "```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    parts = re.split(r"^(#+) (.*)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def code_in(text):
    return sorted(re.findall(r"`([^`]+)`", text.replace("```", "")))


def numbers_in(text):
    plain = re.sub(r"\]\([^)]*\)", "]", text)
    return sorted(re.findall(r"\d+(?:[ .]\d+)*", plain))


def test_both_languages_have_the_same_sections():
    english, chinese = prose("README.md"), prose("README.zh-CN.md")
    assert [level for level, _, _ in english] == [level for level, _, _ in chinese]
    for (_, heading, ours), (_, other, theirs) in zip(english, chinese, strict=True):
        where = f"{heading} | {other}"
        assert ours.count("```") == theirs.count("```"), where
        assert code_in(ours) == code_in(theirs), where
        assert numbers_in(ours) == numbers_in(theirs), where
        links = [
            [link for link in re.findall(r"\]\(([^)]*)\)", text) if "README" not in link[:7]] for text in (ours, theirs)
        ]
        assert links[0] == [TRANSLATED.get(link, link) for link in links[1]], where
        assert len(re.findall(r"^- ", ours, re.MULTILINE)) == len(re.findall(r"^- ", theirs, re.MULTILINE)), where


def test_both_languages_have_the_same_rows():
    tables = []
    for name in ("README.md", "README.zh-CN.md"):
        lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
        tables.append([(line.count("|"), code_in(line)) for line in lines])
    assert len(tables[0]) > 20
    for ours, theirs in zip(*tables, strict=True):
        assert ours == theirs
