"""Pictures of explanations: bars that lead from a mean output to the prediction."""

import numpy as np
import pytest

from kernpool import ExplanationDisplay, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

pytest.importorskip("matplotlib", reason="pictures need the extra plot")

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(0.0, 2.0, (50, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1]


def ends(display):
    """Where the bars start and end, from the top."""
    return [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in display.bars_]


def lead(display, start, end):
    """Whether each bar starts where the one before ends."""
    found = ends(display)
    np.testing.assert_allclose([left for left, _ in found], [start, *(right for _, right in found[:-1])], atol=1e-12)
    np.testing.assert_allclose(found[-1][1], end, rtol=1e-9)


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_bars_of_rows_lead_from_the_mean_to_the_prediction(make):
    model, at = make(bandwidth=0.4).fit(X, Y), X[:3]
    display = ExplanationDisplay.from_estimator(model, at, query=1, k=4, target="wage")
    found = model.get_prediction(at).explain(k=4)
    assert len(display.bars_) == 5
    lead(display, Y.mean(), found.prediction[1])
    np.testing.assert_allclose(display.step[:4], found.contribution[1])
    assert display.ax_.get_yticklabels()[0].get_text().startswith(f"row {found.row[1, 0]}: ")
    assert display.ax_.get_xlabel() == "wage"
    assert f"{found.effective_rows[1]:.3g} effective rows" in display.ax_.get_legend().get_title().get_text()


def test_bars_of_columns_lead_from_the_mean_of_rows_around():
    model = LocalLinearRegressor(bandwidth=0.4).fit(X, np.column_stack([Y, -Y]))
    display = ExplanationDisplay.from_estimator(model, X[:2], by="columns", output=1)
    terms = model.get_prediction(X[:2]).additive_terms()
    lead(display, terms.local_mean[0, 1], terms.prediction[0, 1])
    assert len(display.bars_) == 2
    assert "mean of rows around" in display.ends_[0].get_label()


def test_bars_of_a_class_and_names_of_rows():
    label = np.where(Y > 1.0, "warm", "cold")
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, label)
    names = [f"day {i}" for i in range(50)]
    found = model.get_prediction(X[:1]).explain(k=2)
    predicted = model.predict(X[:1])[0]
    for output in (None, "warm"):
        display = ExplanationDisplay.from_estimator(model, X[:1], k=2, output=output, labels=names)
        chosen = list(model.classes_).index(output or predicted)
        lead(display, found.average[chosen], found.prediction[0, chosen])
        assert display.ax_.get_xlabel().startswith(f"pooled label of {model.classes_[chosen]}, before priors")
        assert display.ends_[1].get_label() == f"pooled label {found.prediction[0, chosen]:.4g}"
        first = display.ax_.get_yticklabels()[0].get_text()
        assert first.startswith(f"row day {found.row[0, 0]}: {label[found.row[0, 0]]}")


def test_a_prediction_of_few_rows_says_so():
    model = NadarayaWatsonRegressor(bandwidth=0.05).fit(X, Y)
    title = ExplanationDisplay.from_estimator(model, X[:1]).ax_.get_legend().get_title().get_text()
    assert title.endswith("effective rows, few: large variance")


def test_bars_are_of_the_predicted_class_where_priors_decide():
    x = np.array([[0.0], [0.1], [3.0], [3.1], [3.2], [3.3], [0.2]])
    model = NadarayaWatsonClassifier("boxcar", bandwidth=1.0, prior_share=0.6).fit(x, list("aabbbbb"))
    assert model.predict([[0.1]]).tolist() == ["b"]
    display = ExplanationDisplay.from_estimator(model, [[0.1]])
    lead(display, 5 / 7, 1 / 3)
    assert display.ax_.get_xlabel().startswith("pooled label of b")


@pytest.mark.parametrize("given", [{"k": 8}, {"labels": np.arange(50)}])
def test_options_of_rows_are_refused_for_columns(given):
    model = LocalLinearRegressor(bandwidth=0.4).fit(X, Y)
    with pytest.raises(ValueError, match=f"{next(iter(given))} is for the bars of training rows"):
        ExplanationDisplay.from_estimator(model, X[:1], by="columns", **given)


def test_what_cannot_be_drawn_is_refused():
    model = NadarayaWatsonRegressor("boxcar", bandwidth=0.4, empty="zero").fit(X, Y)
    with pytest.raises(ValueError, match=r"query must lie in \[0, 0\]"):
        ExplanationDisplay.from_estimator(model, X[:1], query=1)
    with pytest.raises(ValueError, match="by must be"):
        ExplanationDisplay.from_estimator(model, X[:1], by="trees")
    with pytest.raises(TypeError, match="weighted means"):
        ExplanationDisplay.from_estimator(model, X[:1], by="columns")
    with pytest.raises(ValueError, match=r"output must lie in \[0, 0\]"):
        ExplanationDisplay.from_estimator(model, X[:1], output=2)
    with pytest.raises(ValueError, match="no training row in its window"):
        ExplanationDisplay.from_estimator(model, [[3.0, 3.0]])
    classifier = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, Y > 1)
    with pytest.raises(ValueError, match="output must be one of the classes"):
        ExplanationDisplay.from_estimator(classifier, X[:1], output="hot")
    with pytest.raises(TypeError, match="by='rows'"):
        ExplanationDisplay.from_estimator(classifier, X[:1], by="columns")
    with pytest.raises(TypeError, match="has no get_prediction to explain"):
        ExplanationDisplay.from_estimator(object(), X[:1])
