"""The READMEs: what their code prints, what they quote, and that both languages say the same."""

import contextlib
import io
import re
from itertools import pairwise

import pytest

from tests.support.blocks import ROOT, blocks

READMES = ("README.md", "README.zh-CN.md")
CALLS = ("docs/what-do-i-call.md", "docs/zh/what-do-i-call.md")  # the page of tasks, which the READMEs had before
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
both = pytest.mark.parametrize("name", READMES)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def python(name):
    return [block for block in blocks(ROOT / name) if block.language == "python"]


def links_of(text):
    return re.findall(r"\]\(([^)]*)\)", text)


# --- code and its output


def same_output(printed, shown):
    """Whether two texts have the same words, and numbers that differ by at most two units of the last digit shown."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", shown).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    return all(abs(float(ours) - float(theirs)) <= 2.001 * unit(theirs) for ours, theirs in pairs)


def unit(number):
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


@both
def test_the_code_prints_what_is_shown(name, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot", reason="the example needs the extra 'plot'")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    found = blocks(ROOT / name)
    for block, after in pairwise(found):
        if block.language != "python":
            continue
        assert after.language == "text", f"{block.place} shows no output"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, name, "exec"), {})
        assert same_output(printed.getvalue(), after.code), printed.getvalue()
        for file in re.findall(r'savefig\("([^"]+)"\)', block.code):
            assert (tmp_path / file).stat().st_size > 10_000
    plt.close("all")
    assert python(name)


def test_other_output_is_found():
    assert same_output("h  0.301 (a)\n", "h 0.300 (a)")
    assert not same_output("h 0.303 (a)", "h 0.300 (a)")
    assert not same_output("h 0.300 (b)", "h 0.300 (a)")
    assert not same_output("h 0.300", "h 0.300 (a)")


def test_the_install_line_names_what_the_code_imports():
    """A new environment has what the package needs, and what this line installs: no more."""
    (line,) = re.findall(r"^pip install (.*)$", read("README.md"), re.MULTILINE)
    assert line == '".[plot,cli]"'
    imported = set(re.findall(r"^(?:from|import) (\w+)", "".join(block.code for block in python("README.md")), re.M))
    assert imported == {"kernpool", "sklearn"}


@both
def test_the_two_commands_stand_in_two_lines(name):
    assert re.search(r"^make demo +#.*\nmake test +#", read(name), re.MULTILINE)


@both
def test_a_readme_is_short(name):
    assert len(read(name).splitlines()) <= 100


@both
def test_pictures_are_of_modest_size(name):
    """A forge loads them with the page: 200 kB for the still one, 1 MB for the one that moves, with many frames."""
    still, moving = (ROOT / link for link in re.findall(r"!\[[^\]]+\]\(([^)]*)\)", read(name)))
    assert still.stat().st_size < 200_000
    content = moving.read_bytes()
    assert len(content) < 1_000_000
    assert content.count(b"\x21\xf9\x04") > 50  # what stands before each frame of a GIF
    assert b"NETSCAPE2.0" in content  # it repeats


# --- figures


@both
def test_measured_figures_are_those_of_the_pages(name):
    """Every number with a decimal point or an exponent is on a page that its line links to."""
    lines = [line for line in read(name).splitlines() if "(docs/benchmarks/" in line and line.startswith(("- ", "| "))]
    checked = 0
    for line in lines:
        pages = " ".join(read(link) for link in links_of(line) if link.startswith("docs/benchmarks/"))
        for number in re.findall(r"(?<![\w.])\d+(?:\.\d+|e-\d+)(?!\w)", re.sub(r"\]\([^)]*\)", "]", line)):
            if number == "5.3":  # the ratio of the two figures behind it
                continue
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", pages), f"{number} in: {line}"
            checked += 1
    assert checked >= 13


@both
@pytest.mark.parametrize(
    ("page", "row", "figures"),
    [
        ("peers.md", "| kernpool | 2e-15 |", ["2e-15"]),
        ("speed.md", "| 100,000,000 | 1.20 s | 1.50 s | 4.21 s | 567 MiB |", ["100,000,000", "4.21 s", "567 MiB"]),
        ("speed.md", "| 900 rows, 4 numbers, 20 and 3 levels, local linear | 2.78 s |", ["900", "2.78 s"]),
        ("tables.md", "| stacking | 1.90 | +0.0036 |", ["20", "0.0036"]),
        ("tables.md", "| local linear | 3.50 | +0.0186 |", ["20", "0.0186"]),
        ("coverage.md", "| peak, n = 200 | 95.4 ± 0.2 |", ["200", "2000", "95.4 ± 0.2 %"]),
        ("coverage.md", "| 96.9 ± 0.4 | 1.22 | 92.8; 85.8 |", ["92.8 %"]),
        ("coverage.md", "| n = 500, h by leave-one-out, local linear | adaptive | 90.1", ["90.1 %"]),
        ("speed.md", "| 4171 ms | 21.7 ms | the same, to 1e-9 (asserted) | 191.8 |", ["4171 ms", "21.7 ms", "191.8"]),
        ("speed.md", "| one column, n = 1000, 40 problems | 122 times as fast as statsmodels (from 78 to 197) |",
         ["1000", "122", "78", "197", "40"]),
        ("speed.md", "| `jackknife+` | `plus` | 2000 | 1000 | 17.7 s | 76.0 ms | 233 |",
         ["17.7 s", "76.0 ms", "233"]),
    ],
)  # fmt: skip
def test_a_figure_is_of_its_setting(name, page, row, figures):
    """The row of the page that a sentence is about, as it is there."""
    assert row in read(f"docs/benchmarks/{page}")
    said = " ".join(line for line in read(name).splitlines() if f"(docs/benchmarks/{page})" in line)
    assert not [figure for figure in figures if figure.replace(" %", "%") not in said.replace(" %", "%")]


@both
def test_the_ratio_to_keops(name):
    """Of the page with times of all peers, Gaussian, three columns, 10 000 keys and queries."""
    text = read("docs/benchmarks/peers.md").partition("## Seconds, Gaussian, 10 000")[2]
    place = text.partition("| seconds |")[2].splitlines()[0].split("|").index(" 3 columns ")
    ours, theirs = (
        float(re.search(rf"^\| {who} \|(.*)", text, re.M)[1].split("|")[place]) for who in ("kernpool", "KeOps")
    )
    assert f"[{theirs / ours:.1f}](docs/benchmarks/peers.md)" in read(name)
    assert f"{theirs} s" in read(name)
    assert f"{ours} s" in read(name)


# --- two languages


def test_both_languages_show_the_same_code():
    english, chinese = (
        [re.sub(r" *#.*", "", block.code) for block in blocks(ROOT / name) if block.language] for name in READMES
    )
    assert english
    assert english == [block.replace(" --lang zh", "") for block in chinese]


def prose(name):
    """The text without blocks of code, section by section; the level and the words of its heading with each."""
    text = re.sub(r"```.*?```", "```", read(name), flags=re.DOTALL)
    parts = re.split(r"^(#+) (.*)$", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


def code_in(text):
    return sorted(re.findall(r"`([^`]+)`", text.replace("```", "")))


def numbers_in(text):
    plain = re.sub(r"\]\([^)]*\)", "]", text)
    return sorted(re.findall(r"\d+(?:[ .,]\d+)*", plain))


def targets(name, text):
    """What a text links to, from the root of the repository, and the English page in place of a Chinese one."""
    found = [link for link in links_of(text) if not link.startswith("README")]
    folder = (ROOT / name).parent
    paths = [(folder / link.partition("#")[0]).resolve() for link in found]
    assert all(path.exists() for path in paths), paths
    return [in_english(path.relative_to(ROOT).as_posix()) for path in paths]


def in_english(path):
    """The English page of a Chinese one, which is a guide or has its name."""
    name = path.removeprefix("docs/zh/")
    both = (f"docs/guides/{name}", f"docs/{name}")
    return path if name == path else next(other for other in both if (ROOT / other).exists())


@pytest.mark.parametrize("names", [READMES, CALLS], ids=lambda names: names[0])
def test_both_languages_have_the_same_sections(names):
    english, chinese = (prose(name) for name in names)
    assert [level for level, _, _ in english] == [level for level, _, _ in chinese]
    for (_, heading, ours), (_, other, theirs) in zip(english, chinese, strict=True):
        where = f"{heading} | {other}"
        assert ours.count("```") == theirs.count("```"), where
        assert code_in(ours) == code_in(theirs), where
        if names == READMES and heading != "kernpool":  # 100 million is 1 亿
            assert numbers_in(ours) == numbers_in(theirs), where
        assert targets(names[0], ours) == targets(names[1], theirs), where
        assert len(re.findall(r"^- ", ours, re.MULTILINE)) == len(re.findall(r"^- ", theirs, re.MULTILINE)), where


@pytest.mark.parametrize("names", [READMES, CALLS], ids=lambda names: names[0])
def test_both_languages_have_the_same_rows(names):
    tables = [
        [(line.count("|"), code_in(line)) for line in read(name).splitlines() if line.startswith("|")] for name in names
    ]
    assert len(tables[0]) == (6 if names == READMES else 47 + 6 * 2)
    assert tables[0] == tables[1]
