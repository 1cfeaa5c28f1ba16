"""Definitions of the tour's sections: the code that each one prints and executes, its numbers, and its pictures.

All code shares one namespace, in order, like the cells of a notebook. `Step` is one section.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernpool.tour import figures

Namespace = dict[str, Any]
Words = Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """Definition of a section of the tour: formula, code, numbers and drawing function.

    Parameters
    ----------
    name : str
        Key of its texts, and part of its file names.
    formula : str
        In mathtext.
    code : str
        What a reader would type; executed in the namespace of the steps before it. ``SEED`` stands for the seed of the
        tour, see `code_for`.
    numbers : callable
        From the namespace to the numbers of the section, formatted.
    draw : callable
        From namespace and words to figures by name.
    animate : callable or None
        From namespace, words and path to an animation.
    variant : callable
        From the namespace to the suffix of the paragraphs that are true of it, usually none.
    """

    name: str
    formula: str
    code: str
    numbers: Callable[[Namespace], dict[str, str]]
    draw: Callable[[Namespace, Words], dict[str, Any]]
    animate: Callable[[Namespace, Words, Path], object] | None = None
    variant: Callable[[Namespace], str] = lambda _: ""

    def code_for(self, seed: int) -> str:
        """Return the code with the seed of a tour."""
        return self.code.replace("SEED", str(seed))


def _error(n: Namespace, fit: str) -> str:
    return f"{((n[fit] - n['y_truth']) ** 2).mean():.3f}"


STEPS = (
    Step(
        name="cues",
        formula=r"\hat y(q) = \sum_j \alpha_j(q)\, v_j, \qquad \alpha_j \geq 0, \quad \sum_j \alpha_j = 1",
        code="""\
from kernpool import pool, pooling_weights

keys, values = [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 3.0, 1.0]
query = [2.2]
weights = pooling_weights(query, keys, bandwidth=0.6)
pooled = pool(query, keys, values, bandwidth=0.6)
""",
        numbers=lambda n: {
            "weights": ", ".join(f"{weight:.3f}" for weight in n["weights"][0]),
            "pooled": f"{n['pooled'][0]:.3f}",
        },
        draw=figures.draw_cues,
    ),
    Step(
        name="kernels",
        formula=r"\alpha_j(q) = \dfrac{K((q - k_j)/h)}{\sum_l K((q - k_l)/h)}",
        code="""\
from kernpool import KernelDisplay, get_kernel

KernelDisplay.from_kernels(["gaussian", "boxcar", "constant", "epanechnikov"])
KernelDisplay.from_kernels(["epanechnikov", "triangular"])
at_half = {name: get_kernel(name).profile(0.5) for name in ["epanechnikov", "triangular"]}
""",
        numbers=lambda n: {name: f"{value:.4g}" for name, value in n["at_half"].items()},
        draw=figures.draw_kernels,
    ),
    Step(
        name="data",
        formula=r"y_i = f(x_i) + \varepsilon_i, \qquad f_A(x) = 2\sin x + x, \quad f_B(x) = 2\sin x + x^{0.8}",
        code="""\
from kernpool.datasets import make_sine_linear, make_sine_power

seed = SEED
sample_a = make_sine_linear(random_state=seed)   # 40 samples, noise N(0, 1)
sample_b = make_sine_power(random_state=seed)    # 50 samples, noise N(0, 0.5^2)
x_train, y_train, x_test, y_truth = sample_b
""",
        numbers=lambda n: {"n_a": str(len(n["sample_a"].x_train)), "n_b": str(len(n["x_train"]))},
        draw=figures.draw_data,
    ),
    Step(
        name="average",
        formula=r"\hat y(q) = \dfrac{1}{n}\sum_j y_j, \qquad \max_j\, y_j, \qquad \sum_j w_j\, y_j",
        code="""\
import torch

mean = pool(x_test, x_train, y_train, kernel="constant")
maximum = pool(x_test, [0.0], [y_train.max()])   # one value for every query
_, inputs = torch.manual_seed(seed), torch.tensor(y_train)
connected = torch.nn.Linear(len(inputs), 1, bias=False, dtype=inputs.dtype)   # a weight per value, learned
optimizer = torch.optim.SGD(connected.parameters(), lr=0.1 / float(inputs @ inputs))
for _ in range(100):
    optimizer.zero_grad(), torch.mean((connected(inputs) - inputs) ** 2).backward(), optimizer.step()
fully_connected = connected(inputs).item() + 0 * x_test
fit = pool(x_test, x_train, y_train)             # attention: Gaussian, bandwidth 1
""",
        numbers=lambda n: {
            "mean": f"{n['mean'][0]:.3f}",
            "error": _error(n, "mean"),
            "maximum": f"{n['maximum'][0]:.3f}",
            "error_maximum": _error(n, "maximum"),
            "connected": f"{n['fully_connected'][0]:.3f}",
            "error_connected": _error(n, "fully_connected"),
            "error_attention": _error(n, "fit"),
        },
        draw=figures.draw_average,
    ),
    Step(
        name="nonparametric",
        formula=r"\hat y(x) = \sum_j \mathrm{softmax}_j\left(-\dfrac{(x - x_j)^2}{2 h^2}\right) y_j, \qquad h = 1",
        code="""\
from kernpool import convert_bandwidth, kernel_names

fit = pool(x_test, x_train, y_train)             # Gaussian, bandwidth 1
smoothing = convert_bandwidth(0.2, "gaussian", target="canonical")
bandwidths = {kernel: convert_bandwidth(smoothing, kernel, source="canonical").item()
              for kernel in kernel_names() if kernel != "constant"}
fits = {kernel: pool(x_test, x_train, y_train, kernel=kernel, bandwidth=h, empty="nearest")
        for kernel, h in bandwidths.items()}
""",
        numbers=lambda n: {"error": _error(n, "fit"), "error_mean": _error(n, "mean")},
        draw=figures.draw_nonparametric,
    ),
    Step(
        name="weights",
        formula=r"A = (\alpha_j(x_i))_{ij}, \qquad \hat y = A\, y",
        code="""\
from kernpool import AttentionDisplay

attention = pooling_weights(x_test, x_train)     # one row per query, one column per key
AttentionDisplay.from_weights(attention)
difference = abs(attention @ y_train - fit).max()
""",
        numbers=lambda n: {
            "largest": f"{n['attention'].max():.3f}",
            "shape": " × ".join(map(str, n["attention"].shape)),
            "difference": f"{n['difference']:.1e}",
        },
        draw=figures.draw_weights,
    ),
    Step(
        name="bandwidth",
        formula=r"CV(h) = \dfrac{1}{n}\sum_i \left(y_i - \hat y_{-i}(x_i)\right)^2",
        code="""\
from kernpool import BandwidthPathDisplay, NadarayaWatsonRegressor

model = NadarayaWatsonRegressor(bandwidth="loo").fit(x_train[:, None], y_train)
best = model.bandwidth_[0]
by_bandwidth = {h: pool(x_test, x_train, y_train, bandwidth=h) for h in (0.05, best, 3.0)}
BandwidthPathDisplay.from_estimator(model)
""",
        numbers=lambda n: {
            "best": f"{n['best']:.4f}",
            "cv": f"{n['model'].loo_error_:.4f}",
            "errors": ", ".join(f"{((fit - n['y_truth']) ** 2).mean():.3f}" for fit in n["by_bandwidth"].values()),
        },
        draw=figures.draw_bandwidth,
    ),
    Step(
        name="training",
        formula=r"\alpha_j = \mathrm{softmax}_j\left(-\dfrac{((x_i - x_j)\, w)^2}{2}\right), \quad j \neq i,"
        r" \qquad w \leftarrow w - 0.5\, \dfrac{\partial L}{\partial w}",
        code="""\
import torch
from kernpool.torch import AttentionPooling, GaussianSimilarity

x, y = torch.tensor(x_train)[:, None], torch.tensor(y_train)[:, None]
similarity = GaussianSimilarity(1.0, parameterization="inverse_bandwidth", dtype=x.dtype)
layer = AttentionPooling(similarity, algorithm="fused")
optimizer, losses, widths = torch.optim.SGD(layer.parameters(), lr=0.5), [], []
for epoch in range(51):
    loss = torch.mean((layer(x, x, y, exclude_self=True) - y) ** 2)
    losses.append(loss.item()), widths.append(layer.similarity.w.item())
    optimizer.zero_grad(), loss.backward(), optimizer.step()
""",
        numbers=lambda n: {
            "losses": ", ".join(f"{loss:.4f}" for loss in n["losses"][:6]),
            "w5": f"{n['widths'][5]:.3f}",
            "w50": f"{n['widths'][50]:.3f}",
            "loss50": f"{n['losses'][50]:.4f}",
        },
        draw=figures.draw_training,
    ),
    Step(
        name="trained",
        formula=r"\hat y(x) = \sum_j \mathrm{softmax}_j\left(-\dfrac{((x - x_j)\, w)^2}{2}\right) y_j",
        code="""\
w = widths[-1]
after = pool(x_test, x_train, y_train, bandwidth=1 / w)
attention_after = pooling_weights(x_test, x_train, bandwidth=1 / w)
AttentionDisplay.from_weights([[attention, attention_after]], title=["before", "after"])
""",
        numbers=lambda n: {
            "w": f"{n['w']:.3f}",
            "before": _error(n, "fit"),
            "after": _error(n, "after"),
            "sharp_before": f"{n['attention'].max():.3f}",
            "sharp_after": f"{n['attention_after'].max():.3f}",
        },
        draw=figures.draw_trained,
        animate=figures.animate_training,
    ),
    Step(
        name="selection",
        formula=r"\min_w L(w) = \min_h CV(h), \qquad w = 1/h",
        code="""\
optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=200, tolerance_grad=1e-12,
                              tolerance_change=1e-14, line_search_fn="strong_wolfe")
def closure():
    optimizer.zero_grad()
    loss = torch.mean((layer(x, x, y, exclude_self=True) - y) ** 2)
    loss.backward()
    return loss
optimizer.step(closure)
loss_trained, w_trained, w_selected = closure().item(), layer.similarity.w.item(), 1 / best
""",
        numbers=lambda n: {
            "w50": f"{n['widths'][50]:.3f}",
            "trained": f"{n['w_trained']:.6f}",
            "selected": f"{n['w_selected']:.6f}",
            "difference": f"{abs(n['w_trained'] - n['w_selected']):.1e}",
        },
        draw=figures.draw_selection,
        variant=lambda n: "" if abs(n["w_trained"] - n["w_selected"]) < 1e-3 * n["w_selected"] else "_local",
    ),
    Step(
        name="consistency",
        formula=r"E\left(\hat y(x) - f(x)\right)^2 = O(n^{-4/5}), \qquad h = c\, n^{-1/5}",
        code="""\
import numpy as np

inner, sizes, repeats = slice(10, 41), 50 * 4 ** np.arange(6), 20
def error(n, draw):
    sample = make_sine_power(n, random_state=1000 * seed + draw)
    fit = pool(x_test[inner], sample.x_train, sample.y_train, bandwidth=best * (n / 50) ** -0.2)
    return np.mean((fit - y_truth[inner]) ** 2)
mean_errors = [np.mean([error(n, draw) for draw in range(repeats)]) for n in sizes]
slope = np.polyfit(np.log(sizes), np.log(mean_errors), 1)[0]
""",
        numbers=lambda n: {
            "first": f"{n['mean_errors'][0]:.4f}",
            "last": f"{n['mean_errors'][-1]:.5f}",
            "n_last": str(n["sizes"][-1]),
            "slope": f"{n['slope']:.2f}".replace("-", "−"),
        },
        draw=figures.draw_consistency,
    ),
    Step(
        name="uncertainty",
        formula=r"\tilde m(x) \pm t\, \hat\sigma(x) \left(\sum_j \tilde l_j(x)^2\right)^{1/2},"
        r" \qquad \tilde m = 2\, \hat m_h - \hat m_{\sqrt{2} h}",
        code="""\
from kernpool import KernelCurveDisplay, LocalLinearRegressor
from sklearn.datasets import load_diabetes

patients = load_diabetes(scaled=False)           # a table that comes with scikit-learn
blood_fat, progress = patients.data[:, [8]], patients.target
curve = LocalLinearRegressor().fit(blood_fat, progress)
at_five = curve.confidence_interval([[5.0]])
places = np.linspace(blood_fat.min(), blood_fat.max(), 201)[:, None]
whole = curve.confidence_interval(places, simultaneous=True)
rise = curve.confidence_interval(places, quantity="derivative", simultaneous=True)
rising = places[rise.lower > 0]
KernelCurveDisplay.from_estimator(curve, blood_fat, progress, band="simultaneous")
""",
        numbers=lambda n: {
            "rows": str(len(n["progress"])),
            "lower": f"{n['at_five'].lower[0]:.0f}",
            "upper": f"{n['at_five'].upper[0]:.0f}",
            "critical": f"{n['whole'].critical:.2f}",
            "from": f"{n['rising'].min():.1f}",
            "to": f"{n['rising'].max():.1f}",
        },
        draw=figures.draw_uncertainty,
    ),
    Step(
        name="expectation",
        formula=r"\hat Q(\tau \mid x) = \hat m(x) + \min\{r : \sum_{j:\, r_j \leq r} \alpha_j(x) \geq \tau\},"
        r" \qquad \hat m(x) \pm \hat s(x)\, R_{(\lceil 0.9 (n + 1) \rceil)}",
        code="""\
from kernpool import CoverageDisplay, QuantileFanDisplay

next_patient = curve.prediction_interval([[5.0]], level=0.9)
quantiles = curve.quantile([[5.0]], [0.05, 0.5, 0.95])
QuantileFanDisplay.from_estimator(curve, blood_fat, progress)
KernelCurveDisplay.from_estimator(curve, blood_fat, progress, band="confidence", prediction=0.9)
lower, upper = np.zeros((2, len(progress)))
for k in range(10):                              # each tenth of the patients, by a model of the others
    new = np.arange(len(progress)) % 10 == k
    found = LocalLinearRegressor().fit(blood_fat[~new], progress[~new]).prediction_interval(blood_fat[new])
    lower[new], upper[new] = found.lower, found.upper
CoverageDisplay.from_intervals(blood_fat[:, 0], progress, (lower, upper), level=0.9, slices=6)
""",
        numbers=lambda n: {
            "lower": f"{n['next_patient'].lower[0]:.0f}",
            "upper": f"{n['next_patient'].upper[0]:.0f}",
            "low": f"{n['quantiles'][0, 0]:.0f}",
            "median": f"{n['quantiles'][0, 1]:.0f}",
            "high": f"{n['quantiles'][0, 2]:.0f}",
            "covered": f"{100 * ((n['lower'] <= n['progress']) & (n['progress'] <= n['upper'])).mean():.1f} %",
        },
        draw=figures.draw_expectation,
    ),
    Step(
        name="outliers",
        formula=r"w_i = \left(1 - \left(\dfrac{r_i}{6 \, \mathrm{median}\, |r|}\right)^2\right)^2"
        r"\ \mathrm{where}\ |r_i| < 6\, \mathrm{median}\, |r|, \qquad w_i = 0\ \mathrm{elsewhere}",
        code="""\
spoiled = y_train.copy()
spoiled[::10] += 8                               # five of the fifty values are wrong
columns, at = x_train[:, None], x_test[:, None]
plain = LocalLinearRegressor().fit(columns, spoiled).predict(at)
resistant = LocalLinearRegressor(robust=True).fit(columns, spoiled)
robust = resistant.predict(at)
without_weight = int((resistant.robust_weight_ == 0).sum())
""",
        numbers=lambda n: {
            "plain": _error(n, "plain"),
            "robust": _error(n, "robust"),
            "zero": str(n["without_weight"]),
        },
        draw=figures.draw_outliers,
    ),
    Step(
        name="scores",
        formula=r"a(q, k) = -\dfrac{|q - k|^2}{2h^2}, \quad \dfrac{q \cdot k}{\sqrt{d}}, \quad"
        r" v \cdot \tanh(W_q q + W_k k), \quad q^\top W k",
        code="""\
from kernpool.torch import AdditiveSimilarity, BilinearSimilarity, DotProductSimilarity

_ = torch.manual_seed(seed)
queries, memory, lengths = torch.randn(2, 6, 4), torch.randn(2, 10, 4), torch.tensor([4, 7])
scores = [GaussianSimilarity(), DotProductSimilarity(), AdditiveSimilarity(4, 4, 8), BilinearSimilarity(4, 4)]
heads = [AttentionPooling(score)(queries, memory, memory, valid_lens=lengths, return_weights=True)[1]
         for score in scores]

equal_keys, items = torch.ones(2, 10, 2), torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
additive = AttentionPooling(AdditiveSimilarity(20, 2, 8))
means = additive(torch.randn(2, 1, 20), equal_keys, items, valid_lens=torch.tensor([2, 6]))
""",
        numbers=lambda n: {
            "first": ", ".join(f"{number:g}" for number in n["means"][0, 0].detach().numpy().round(4)),
            "second": ", ".join(f"{number:g}" for number in n["means"][1, 0].detach().numpy().round(4)),
        },
        draw=figures.draw_scores,
    ),
    Step(
        name="masks",
        formula=r"\alpha_j = \dfrac{[j\ \mathrm{valid}]\ e^{s_j}}{\sum_{l\ \mathrm{valid}} e^{s_l}}",
        code="""\
from kernpool.torch import masked_softmax

values = np.arange(20.0).reshape(2, 10, 1)       # two sequences of ten values, weights 0.1 each
batched = pool(np.zeros((2, 1, 1)), np.zeros((2, 10, 1)), values, kernel="constant")

logits = torch.zeros(2, 3, 4)                    # two sequences, three queries, four keys
by_sequence = masked_softmax(logits, torch.tensor([2, 3]))
by_query = masked_softmax(logits, torch.tensor([[1, 2, 3], [4, 0, 2]]))
by_mask = masked_softmax(logits, torch.tensor([True, False, True, True]))
pooled, last_weights = layer(x, x, y, exclude_self=True, return_weights=True)
""",
        numbers=lambda n: {
            "batched": ", ".join(f"{value:g}" for value in n["batched"].ravel()),
            "empty_row": ", ".join(f"{weight:g}" for weight in n["by_query"][1, 1].tolist()),
            "last": " × ".join(map(str, n["last_weights"].shape)),
        },
        draw=figures.draw_masks,
    ),
)
