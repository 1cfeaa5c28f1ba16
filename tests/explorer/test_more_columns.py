"""The explorer's panels beside several columns and classes: slices, relevance, the common factor, bands of classes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, explore
from tests.support.explorer_panels import numbers, panel, press, wait_until_idle

REGIONS = ("north", "south", "west")


def table(n=60):
    generator = np.random.default_rng(5)
    region = generator.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "age": generator.uniform(20, 60, n),
            "region": pd.Categorical.from_codes(region, REGIONS),
            "income": generator.lognormal(size=n),
        }
    )
    y = np.sin(frame["age"] / 8) + np.log(frame["income"]) + 0.5 * region + 0.2 * generator.normal(size=n)
    return frame, y.to_numpy()


def classes(n=90):
    generator = np.random.default_rng(6)
    code = np.arange(n) % 3
    X = np.column_stack([code + 0.6 * generator.normal(size=n), generator.normal(size=n)])
    return X, np.array(["low", "middle", "high"])[code]


@pytest.fixture(scope="module")
def model():
    return NadarayaWatsonRegressor().fit(*table())


@pytest.fixture(scope="module")
def page(shown, model):
    with shown(explore(model)) as found:
        yield found


@pytest.fixture(scope="module")
def classifier():
    return NadarayaWatsonClassifier(bandwidth=[0.4, 0.9], prior_share=0.02).fit(*classes())


@pytest.fixture(scope="module")
def class_page(shown, classifier):
    with shown(explore(classifier)) as found:
        yield found


def test_relevance_is_that_of_the_search(page, model):
    expected = dict(zip(("age", "region", "income"), model.relevance_, strict=True))
    found = numbers(page, "relevance")["now"]
    assert_allclose(found, [expected[name] for name in ("age", "income", "region")], rtol=1e-12)


def test_slices_choose_the_axis_and_hold_the_rest(page, model):
    frame, _ = table()
    part = panel(page, "slices")
    part.get_by_label("income is the axis").check()
    age = part.get_by_label("age of the query")
    press(page, age, "PageUp", 2)
    part.get_by_label("region of the query").select_option("south")
    wait_until_idle(page)
    found = numbers(page, "heat")
    held = pd.DataFrame({"age": float(age.input_value()), "region": "south", "income": found["places"]})
    held["region"] = pd.Categorical(held["region"], REGIONS)
    expected = model.attention_weights(held)[:, np.argsort(frame["income"], kind="stable")]
    assert_allclose(found["cells"].reshape(50, -1), expected, rtol=0, atol=1e-12)
    part.get_by_label("age is the axis").check()
    wait_until_idle(page)


def test_the_common_factor_moves_all_bandwidths_and_agrees_with_the_engine(page, model):
    frame, y = table()
    path = panel(page, "path")
    found = numbers(page, "path")
    for k in (8, 20, 40):
        h = model.bandwidth_ * found["grid"][k]
        fixed = NadarayaWatsonRegressor(bandwidth=h, smoothing=model.smoothing_.tolist()).fit(frame, y)
        weights = fixed.attention_weights(frame)
        np.fill_diagonal(weights, 0.0)
        residual = y - weights @ y / weights.sum(axis=1)
        assert found["errors"][k] == pytest.approx(np.mean(residual**2), rel=1e-9)
    slider = path.locator("[role=slider]")
    assert float(slider.get_attribute("aria-valuenow")) == pytest.approx(1.0, rel=1e-12)
    press(page, slider, "ArrowRight", 3)
    shown = [float(text) for text in page.locator("[data-panel=controls] .kp-slider output").all_inner_texts()[:2]]
    assert_allclose(shown, model.bandwidth_ * 1.05**3, rtol=6e-3)  # as written, with three digits


def test_bands_are_the_probabilities_of_the_classifier(class_page, classifier):
    X, _ = classes()
    found = numbers(class_page, "classes")
    places = found["places"]
    held = np.column_stack([places, np.full(len(places), np.sort(X[:, 1])[len(X) >> 1])])
    assert_allclose(found["probability"].reshape(3, -1).T, classifier.predict_proba(held), rtol=0, atol=1e-10)


def test_bands_have_names_patterns_and_a_text(class_page, classifier):
    part = panel(class_page, "classes")
    X, _ = classes()
    slider = part.locator("[role=slider]")
    press(class_page, slider, "Home")
    assert float(slider.get_attribute("aria-valuenow")) == X[:, 0].min()
    label = part.locator("svg[role=img]").get_attribute("aria-label")
    expected = classifier.predict_proba([[X[:, 0].min(), np.sort(X[:, 1])[len(X) >> 1]]])[0]
    for name, share in zip(classifier.classes_, expected, strict=True):
        said = float(label.split(f"{name} ")[1].split(",")[0].rstrip("."))
        assert said == pytest.approx(share, abs=6e-3)
    tiles = part.locator("pattern path").evaluate_all("(paths) => paths.map((path) => path.getAttribute('d'))")
    assert len(set(tiles)) == 3


def test_the_path_of_classes_is_the_brier_score(class_page):
    X, y = classes()
    found = numbers(class_page, "path")
    truth = (y[:, None] == np.unique(y)).astype(float)
    for k in (10, 25, 40):
        model = NadarayaWatsonClassifier(bandwidth=np.array([0.4, 0.9]) * found["grid"][k], prior_share=0.0).fit(X, y)
        weights = model.attention_weights(X)
        np.fill_diagonal(weights, 0.0)
        probability = weights @ truth / weights.sum(axis=1, keepdims=True)
        assert found["errors"][k] == pytest.approx(np.mean(np.sum((truth - probability) ** 2, axis=1)), rel=1e-8)
