"""The tour: complete in both languages, self-contained, honest about its numbers, and careful with folders."""

import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the tour needs the extra 'plot'")
pytest.importorskip("torch", reason="the tour needs the extra 'torch'")

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from kernpool.cli import main
from kernpool.kernels import BUILT_IN
from kernpool.tour import LANGUAGES, make_tour
from kernpool.tour.page import Pictures, read_texts
from kernpool.tour.steps import STEPS
from tests.support.browser import browser, opened, violations  # noqa: F401  # fixtures

pytestmark = pytest.mark.slow  # each language takes half a minute to draw
in_both_languages = pytest.mark.parametrize("language", LANGUAGES)


def run_tour(*arguments):
    command = [sys.executable, "-m", "kernpool", "tour", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """A function that returns the page of a language, and writes it when it is asked for the first time."""
    folder = tmp_path_factory.mktemp("tours")

    @cache
    def page(language):
        if language == "en":  # as a reader makes it
            done = run_tour("--out", folder / language)
            assert (done.returncode, done.stdout) == (0, ""), done.stderr
            assert str(folder / language / "index.html") in done.stderr
            return folder / language / "index.html"
        before = plt.get_fignums()
        written = make_tour(folder / language, language=language)
        assert plt.get_fignums() == before  # no figure is left behind
        return written

    return page


def shape(texts):
    """The structure of a tree of texts: its keys and the lengths of its lists."""
    if isinstance(texts, dict):
        return {key: shape(value) for key, value in texts.items()}
    return [shape(text) for text in texts] if isinstance(texts, list) else type(texts).__name__


def test_both_languages_say_everything():
    english, chinese = read_texts("en"), read_texts("zh")
    assert shape(english) == shape(chinese)
    assert set(english["steps"]) == {step.name for step in STEPS}
    assert set(BUILT_IN) <= set(english["words"])
    assert "paragraphs_local" in english["steps"]["selection"]

    def placeholders(texts):
        if isinstance(texts, str):
            return re.findall(r"\{[^}]*\}", texts)
        parts = texts.values() if isinstance(texts, dict) else texts
        return sorted(placeholder for part in parts for placeholder in placeholders(part))

    for name in english["steps"]:
        assert placeholders(english["steps"][name]) == placeholders(chinese["steps"][name])
    assert placeholders(english["words"]) == placeholders(chinese["words"])
    untranslated = [word for word in english["words"] if english["words"][word] == chinese["words"][word]]
    assert untranslated == []


class Page(HTMLParser):
    """Collects what a page refers to."""

    def __init__(self):
        super().__init__()
        self.links, self.sources, self.ids, self.alternatives = [], [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [attributes["href"]] if "href" in attributes else []
        self.ids += [attributes["id"]] if "id" in attributes else []
        if tag == "img":
            self.sources.append(attributes["src"])
            self.alternatives.append(attributes["alt"])
        assert tag not in ("script", "link", "iframe")


@in_both_languages
def test_the_page_needs_nothing_else(tour, language):
    text = tour(language).read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.ids == [step.name for step in STEPS]
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert all(source.startswith("data:image/") for source in page.sources)
    assert all(page.alternatives)
    assert "url(" not in text
    assert ("zh-Hans" in text) == (language == "zh")
    for step in STEPS:
        assert len(step.code.splitlines()) <= 12
    assert "{" not in re.sub(r"<style>.*?</style>|<pre.*?</pre>|alt=\"[^\"]*\"", "", text, flags=re.DOTALL)


@in_both_languages
def test_pictures_lie_beside_the_page(tour, language):
    names = sorted(path.name for path in tour(language).parent.iterdir())
    assert names == sorted(path.name for path in tour("en").parent.iterdir())
    assert len([name for name in names if name.endswith(".png")]) >= 16
    assert [name for name in names if not name.endswith(".png")] == ["09-trained.gif", "index.html"]


@in_both_languages
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(tour, language, scheme, browser):  # noqa: F811  # a fixture
    with opened(browser, tour(language).as_uri(), color_scheme=scheme) as page:
        assert violations(page) == []


def test_the_numbers_are_those_of_the_code(tour):
    """Execute the printed code as a reader would, and find its numbers on the page."""
    text = tour("en").read_text(encoding="utf-8")
    namespace = {}
    for step in STEPS:
        exec(step.code_for(0), namespace)
        for value in step.numbers(namespace).values():
            assert f"<td>{value}</td>" in text
    plt.close("all")
    assert abs(namespace["w_trained"] - namespace["w_selected"]) < 1e-4
    assert namespace["slope"] == pytest.approx(-0.8, abs=0.1)
    assert namespace["losses"] == sorted(namespace["losses"], reverse=True)
    assert namespace["batched"].ravel().tolist() == [4.5, 14.5]
    assert namespace["by_query"][1, 1].tolist() == [0, 0, 0, 0]
    assert namespace["last_weights"].diagonal().eq(0).all()
    assert namespace["means"].detach().numpy().round(4).tolist() == [[[2, 3, 4, 5]], [[10, 11, 12, 13]]]


def test_without_a_chinese_font_the_page_keeps_its_text(tmp_path, monkeypatch):
    monkeypatch.setattr("kernpool.displays.drawing.CHINESE_FONTS", ())
    words, fallback = read_texts("zh")["words"], read_texts("en")["words"]
    pictures = Pictures(tmp_path, "zh", fallback)
    namespace = {}
    exec(STEPS[0].code, namespace)
    import base64

    (picture,) = pictures.draw(1, STEPS[0], namespace, words)
    assert "查询" in base64.b64decode(picture.url.partition(",")[2]).decode()
    assert (tmp_path / "01-cues.png").exists()


def test_the_command_says_where_words_are_english(monkeypatch, capsys):
    monkeypatch.setattr("kernpool.displays.chinese_font", lambda: None)
    monkeypatch.setattr("kernpool.tour.make_tour", lambda out, **_: Path(out))
    for more, lines in (["--lang", "zh"], 2), (["--lang", "en"], 1), (["--lang", "zh", "--quiet"], 0):
        assert main(["tour", "--out", "here", *more]) == 0
        said = capsys.readouterr().err
        assert said.count("\n") == lines
        assert ("PNG files have English words" in said) == (lines == 2)


@pytest.fixture
def short(monkeypatch):
    """A tour of one step, where folders are what is tested."""
    monkeypatch.setattr("kernpool.tour.page.STEPS", STEPS[:1])


@pytest.mark.usefixtures("short")
def test_folders(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    make_tour(".")  # the folder itself stays, also for a shell that is in it
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["01-cues.png", "index.html"]
    with pytest.raises(FileExistsError, match=r"holds a tour already.*replace it with force=True$"):
        make_tour(tmp_path / "empty")
    (tmp_path / "empty" / "index.html").chmod(0o600)
    make_tour(tmp_path / "empty", force=True)
    assert (tmp_path / "empty" / "index.html").stat().st_mode & 0o777 == 0o600
    (tmp_path / "site").mkdir()
    for name in ("index.html", "01-beach.png"):
        (tmp_path / "site" / name).write_text("of a holiday")
    with pytest.raises(FileExistsError, match="holds pictures or a page of something else"):
        make_tour(tmp_path / "site", force=True)
    assert {path.read_text() for path in (tmp_path / "site").iterdir()} == {"of a holiday"}
    (tmp_path / "empty" / "notes.txt").write_text("mine")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    for folder, name in (("empty", "notes.txt"), ("thesis", "chapter.txt")):
        for force in (False, True):
            with pytest.raises(FileExistsError, match=f"holds other files, '{name}'"):
                make_tour(tmp_path / folder, force=force)
        assert (tmp_path / folder / name).exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        make_tour(tmp_path / "file", force=True)
    with pytest.raises(FileNotFoundError, match="make it first"):
        make_tour(tmp_path / "no" / "where")
    with pytest.raises(OSError, match=r"cannot write there.*proc"):
        make_tour("/proc/tour")
    with pytest.raises(ValueError, match="unknown language 'fr'; the tour is available in en and zh"):
        make_tour(tmp_path / "fr", language="fr")
    for seed in (-1, 2**53, 1.5):
        with pytest.raises(ValueError, match="seed must be"):
            make_tour(tmp_path / "seed", seed=seed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "site", "thesis"]


def test_where_training_stops_in_another_valley_the_page_says_so():
    """With seed 41 the first valley is not the deepest; the text and the marks must not claim it."""
    selection = next(step for step in STEPS if step.name == "selection")
    namespace = {}
    for step in STEPS[: STEPS.index(selection) + 1]:
        exec(step.code_for(41), namespace)
    plt.close("all")
    assert selection.variant(namespace) == "_local"
    (figure,) = selection.draw(namespace, read_texts("en")["words"]).values()
    marks = {line.get_label(): line.get_xydata()[0] for line in figure.axes[0].lines if len(line.get_xdata()) == 1}
    plt.close(figure)
    np.testing.assert_allclose(marks["trained to convergence"], [namespace["w_trained"], namespace["loss_trained"]])
    np.testing.assert_allclose(marks["found by the search"], [1 / namespace["best"], namespace["model"].loo_error_])
    assert namespace["model"].loo_error_ < namespace["loss_trained"]


def test_a_failure_half_way_leaves_nothing(tmp_path):
    def fail(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_tour(tmp_path / "tour", progress=fail)
    assert list(tmp_path.iterdir()) == []


def test_the_command_refuses_in_its_own_words(tour, tmp_path):
    for arguments, code, message in (
        (["--out", tour("en").parent], 1, "holds a tour already"),
        (["--out", tmp_path / "t", "--seed", "-1"], 2, "--seed must be an integer in"),
        (["--out", tmp_path / "t", "--lang", "fr"], 2, "--lang: invalid choice: 'fr' (choose from 'en', 'zh')"),
        (["--out", tmp_path / "t", "--seed", "x"], 2, "invalid int value"),
    ):
        done = run_tour(*arguments)
        assert done.returncode == code
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.usefixtures("short")
def test_the_same_seed_gives_the_same_page(tmp_path):
    pages = [make_tour(tmp_path / name, seed=seed).read_text("utf-8") for name, seed in (("a", 3), ("b", 3), ("c", 4))]
    assert pages[0] == pages[1] != pages[2]


@pytest.mark.parametrize(("module", "extra"), [("matplotlib.pyplot", "plot"), ("torch", "torch")])
def test_missing_extras_are_named(module, extra, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name == "kernpool.torch" or name.startswith("kernpool.torch.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"kernpool\[{extra}\]"):
        make_tour(tmp_path / "tour")
    assert list(tmp_path.iterdir()) == []
