"""Draw the pictures of the tour (docs/tour.md), from the variables that the code of that page computes.

    python docs/tour_pictures.py [FOLDER]

Without a folder, those of the pages themselves are drawn anew: docs/images/tour.
"""

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from kernpool.displays import (
    AttentionDisplay,
    BandwidthPathDisplay,
    CoverageDisplay,
    KernelCurveDisplay,
    KernelDisplay,
    QuantileFanDisplay,
    drawing,
    import_pyplot,
)
from kernpool.pooling import pool, pooling_weights

Namespace = dict[str, Any]
Figures = dict[str, Any]
ROOT = Path(__file__).resolve().parent
ORANGE, PURPLE = "#e08a00", "#832db6"
NAMED = {"gaussian": "Gaussian", "epanechnikov": "Epanechnikov", "laplace": "Laplace"}  # kernels with capital letters


def _panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Any, Any]:
    plt = import_pyplot()
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained", **options)


def _fit(ax: Any, n: Namespace, prediction: Any, title: str | None = None, legend: bool = True) -> None:
    KernelCurveDisplay.from_predictions(
        n["x_test"],
        prediction,
        x_train=n["x_train"],
        y_train=n["y_train"],
        truth=n["y_truth"],
        name="prediction",
        ax=ax,
    )
    # as it is taught: x in [0, 5], y in [-1, 5]; more only if a draw of the noise leaves it
    ax.set(xlim=(-0.1, 5.1), ylim=(min(-1.0, n["y_train"].min() - 0.2), max(5.0, n["y_train"].max() + 0.2)))
    if title:
        ax.set_title(title)
    if not legend:
        ax.get_legend().remove()


def draw_cues(n: Namespace) -> Figures:
    """Draw keys with their values and one query, and in a second panel the weights of the keys as bars."""
    figure, (left, right) = _panels(1, 2, 9.0, 3.4)
    keys, values, weights, query = n["keys"], n["values"], n["weights"][0], n["query"][0]
    left.vlines(keys, 0, values, color=drawing.GRAY, linewidth=1)
    left.scatter(
        keys, values, s=60 + 900 * weights, color=drawing.BLUE, alpha=0.7, linewidths=0, label="keys and values"
    )
    left.axvline(query, color=drawing.BLACK, linestyle=":", label="query")
    left.plot([query], n["pooled"], "D", color=drawing.RED, markersize=9, label="pooled value")
    left.set(xlabel="key", ylabel="value", xlim=(0.4, 4.6), ylim=(0, 5.6), xticks=keys)
    left.legend(frameon=False, loc="upper right", markerscale=0.6)
    right.bar(keys, weights, color=drawing.BLUE, width=0.5)
    for key, weight in zip(keys, weights, strict=True):
        right.annotate(
            f"{weight:.2f}", (key, weight), ha="center", va="bottom", xytext=(0, 2), textcoords="offset points"
        )
    right.set(xlabel="key", ylabel="weight", xticks=keys, ylim=(0, weights.max() * 1.15))
    drawing.tidy(left)
    drawing.tidy(right)
    return {"cues": figure}


def draw_kernels(_: Namespace) -> Figures:
    """Draw four common kernels, and the parabola and the triangle that are both called Epanechnikov."""
    taught = ["gaussian", "boxcar", "constant", "epanechnikov"]
    four = KernelDisplay.from_kernels(taught, names=[NAMED.get(name, name) for name in taught])
    figure, ax = _panels(1, 1, 6.4, 3.4)
    u = np.linspace(-1.5, 1.5, 301)
    for name, color, style, label in (
        ("epanechnikov", drawing.BLUE, "-", "Epanechnikov: 0.75 (1 − u²)"),
        ("triangular", drawing.RED, "--", "triangular: 1 − |u|"),
    ):
        profile = np.interp(u, *_profile(name))
        ax.plot(u, profile, color=color, linestyle=style, linewidth=2.2, label=label)
    ax.set(xlabel="u = (q − k) / h", ylabel="K(u)", ylim=(0, 1.35))
    ax.legend(frameon=False, loc="upper center", ncols=2)
    drawing.tidy(ax)
    return {"kernels": four.figure_, "two-epanechnikovs": figure}


def _profile(name: str) -> tuple[Any, Any]:
    from kernpool.kernels import get_kernel

    u = np.linspace(-1.5, 1.5, 3001)
    return u, get_kernel(name).profile(np.abs(u))


def draw_data(n: Namespace) -> Figures:
    """Draw the samples and the true function of both data generators."""
    figure, axes = _panels(1, 2, 9.0, 3.6, sharex=True)
    for ax, sample, name in zip(axes, (n["sample_a"], n["sample_b"]), ("A", "B"), strict=True):
        ax.scatter(
            sample.x_train, sample.y_train, color=drawing.GRAY, alpha=0.45, s=36, linewidths=0, label="training samples"
        )
        ax.plot(sample.x_test, sample.y_truth, color=drawing.BLACK, linestyle="--", label="truth")
        ax.set(xlabel="x", ylabel="y", title=f"generator {name}")
        drawing.tidy(ax)
        ax.legend(frameon=False)
    return {"data": figure}


def draw_average(n: Namespace) -> Figures:
    """Draw the flat lines of three ways of pooling without a query, and attention, with their errors."""
    figure, ax = _panels(1, 1, 6.4, 4.4)
    _fit(ax, n, n["fit"])
    drawn = [("attention", "fit", drawing.RED, "-"), ("average pooling", "mean", drawing.BLUE, "-")]
    drawn += [
        ("maximum pooling", "maximum", ORANGE, "-."),
        ("fully connected layer", "fully_connected", PURPLE, ":"),
    ]
    for _, name, color, style in drawn[1:]:
        ax.plot(n["x_test"], n[name], color=color, linestyle=style, linewidth=2.4)
    lines = [line for line in ax.lines if line.get_label() != "truth"]
    errors = [np.mean((n[name] - n["y_truth"]) ** 2) for _, name, _, _ in drawn]
    for line, (label, _, _, _), error in zip(lines, drawn, errors, strict=True):
        line.set_label(f"{label}: {error:.3f}")
    ax.legend(
        frameon=True,
        framealpha=0.8,
        edgecolor="none",
        loc="lower center",
        fontsize="small",
        title="mean squared error",
    )
    return {"average": figure}


def draw_nonparametric(n: Namespace) -> Figures:
    """Draw the fit with the Gaussian kernel, and those with all built-in kernels in a grid of panels."""
    one, ax = _panels(1, 1, 6.4, 3.8)
    _fit(ax, n, n["fit"])
    columns = 4
    rows = -(-len(n["fits"]) // columns)
    many, axes = _panels(rows, columns, 10.0, 2.3 * rows, sharex=True, sharey=True)
    for panel, (kernel, fit) in zip(axes.ravel(), n["fits"].items(), strict=False):
        error = np.mean((fit - n["y_truth"]) ** 2)
        _fit(
            panel,
            n,
            fit,
            title=f"{NAMED.get(kernel, kernel)}, h = {n['bandwidths'][kernel]:.2f}: {error:.3f}",
            legend=False,
        )
        panel.label_outer()
        panel.title.set_fontsize(10)
    for i in range(len(n["fits"]), rows * columns):  # where the grid ends early, the panel above ends its column
        axes.ravel()[i].axis("off")
        axes.ravel()[i - columns].tick_params(labelbottom=True)
        axes.ravel()[i - columns].set_xlabel("x")
    handles, labels = ax.get_legend_handles_labels()
    axes.ravel()[-1].legend(handles, labels, frameon=False, loc="center")
    return {"gaussian-fit": one, "every-kernel": many}


def draw_weights(n: Namespace) -> Figures:
    """Draw the heat map of the pooling weights, queries down and keys across."""
    display = AttentionDisplay.from_weights(
        n["attention"], x_label="training input x (keys)", y_label="test input x (queries)"
    )
    _label_weights(display, n)
    return {"weights": display.figure_}


def _label_bar(display: AttentionDisplay) -> None:
    assert display.colorbar_ is not None
    display.colorbar_.set_label("weight")


def _label_weights(display: AttentionDisplay, n: Namespace) -> None:
    """Give rows and columns of weights the inputs as ticks, which are sorted, and the bar its name."""
    _label_bar(display)
    whole = np.arange(5)
    for ax in display.axes_.flat:
        for axis, inputs in ((ax.xaxis, n["x_train"]), (ax.yaxis, n["x_test"])):
            axis.set_ticks(np.searchsorted(inputs, whole), [str(x) for x in whole])


def draw_bandwidth(n: Namespace) -> Figures:
    """Draw fits with too small, good and too large bandwidths, and the leave-one-out error by bandwidth."""
    figure, axes = _panels(1, 3, 10.0, 3.5, sharey=True)
    for ax, (h, _), name in zip(axes, n["by_bandwidth"].items(), ("too small", "right", "too large"), strict=True):
        fine = np.linspace(0, 4.9, 491)  # at h = 0.05 the grid of the teacher would skip the wiggles
        _fit(ax, n, n["by_bandwidth"][h], title=f"{name}: h = {h:.3g}", legend=ax is axes[0])
        ax.lines[-1].set_data(fine, pool(fine, n["x_train"], n["y_train"], bandwidth=h))
        ax.label_outer()
    path, ax = _panels(1, 1, 6.4, 3.8)
    BandwidthPathDisplay.from_estimator(n["model"], ax=ax)
    ax.set(xlabel="bandwidth h", ylabel="leave-one-out error", xlim=(n["best"] / 20, 20 * n["best"]))
    return {"bandwidths": figure, "bandwidth-path": path}


def draw_training(n: Namespace) -> Figures:
    """Draw the training loss per epoch, for five and for fifty epochs."""
    figure, axes = _panels(1, 2, 9.0, 3.5)
    for ax, epochs in zip(axes, (5, 50), strict=True):
        ax.plot(n["losses"][: epochs + 1], "o-", color=drawing.BLUE, markersize=6 if epochs == 5 else 3)
        title, ticks = f"{epochs} epochs", range(0, epochs + 1, epochs // 5)
        ax.set(title=title, xlabel="epoch", ylabel="mean loss", xticks=ticks)
        drawing.tidy(ax)
    return {"training": figure}


def draw_trained(n: Namespace) -> Figures:
    """Draw the fit and the heat map of weights before and after training of w = 1 / h."""
    figure, axes = _panels(1, 2, 9.0, 3.7, sharey=True)
    names = ("before: w = 1", f"after: w = {n['w']:.2f}")
    for ax, prediction, name in zip(axes, (n["fit"], n["after"]), names, strict=True):
        _fit(ax, n, prediction, title=name, legend=ax is axes[0])
        ax.label_outer()
    display = AttentionDisplay.from_weights(
        [[n["attention"], n["attention_after"]]],
        title=list(names),
        x_label="training input x (keys)",
        y_label="test input x (queries)",
    )
    _label_weights(display, n)
    return {"fit-before-and-after": figure, "weights-before-and-after": display.figure_}


def animate_training(n: Namespace, path: Path) -> None:
    """Write an animation of the fit and the weights during training of w = 1 / h to the file `path`."""
    from matplotlib.animation import FuncAnimation, PillowWriter

    shown = [0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50]
    figure, (left, right) = _panels(1, 2, 9.0, 3.7)
    image = right.imshow(n["attention"], cmap="Reds", vmin=0.0, vmax=n["attention_after"].max(), aspect="auto")
    right.set(xlabel="sorted training inputs (keys)", ylabel="sorted test inputs (queries)")
    figure.colorbar(image, ax=right, label="weight")

    def draw(epoch: int) -> list[Any]:
        h = 1 / abs(n["widths"][epoch])
        left.clear()
        title = "epoch {}: loss {:.4f}".format(epoch, n["losses"][epoch])
        _fit(left, n, pool(n["x_test"], n["x_train"], n["y_train"], bandwidth=h), title=title)
        image.set_data(pooling_weights(n["x_test"], n["x_train"], bandwidth=h))
        return [image]

    FuncAnimation(figure, draw, frames=shown, blit=False).save(path, writer=PillowWriter(fps=2), dpi=80)


def draw_selection(n: Namespace) -> Figures:
    """Draw the leave-one-out error against w = 1 / h, w at each epoch of training, and w of the bandwidth search."""
    figure, ax = _panels(1, 1, 7.0, 4.0)
    x, y = n["x_train"], n["y_train"]
    end = 1.4 * max(n["w_selected"], n["w_trained"], max(n["widths"]))
    grid = np.linspace(0.02 * end, end, 300)
    errors = [np.mean((y - pool(x, x, y, bandwidth=1 / w, exclude_self=True)) ** 2) for w in grid]
    ax.plot(grid, errors, color=drawing.BLACK, linewidth=1.5, label="leave-one-out error at h = 1 / w")
    ax.plot(
        n["widths"],
        n["losses"],
        "o",
        color=drawing.BLUE,
        markersize=6,
        alpha=0.7,
        label="50 epochs of gradient descent",
    )
    ax.plot([n["w_trained"]], [n["loss_trained"]], "D", color=drawing.RED, markersize=8, label="trained to convergence")
    ax.plot(
        [n["w_selected"]], [n["model"].loo_error_], "o", markersize=17, markerfacecolor="none",
        markeredgecolor=drawing.BLACK, markeredgewidth=1.5, label="found by the search",
    )  # fmt: skip
    ax.set(
        xlabel="w = 1 / h",
        ylabel="leave-one-out error",
        ylim=(0.9 * min(errors), max(n["losses"]) * 1.25),
        xlim=(0, end),
    )
    ax.legend(frameon=False)
    drawing.tidy(ax)
    return {"selection": figure}


def draw_consistency(n: Namespace) -> Figures:
    """Draw the squared error against the sample size on logarithmic axes, with the theoretical slope."""
    figure, ax = _panels(1, 1, 6.4, 4.0)
    sizes, errors = n["sizes"], np.array(n["mean_errors"])
    center = np.exp(np.mean(np.log(errors)) + 0.8 * np.mean(np.log(sizes)))
    ax.plot(sizes, center * sizes**-0.8, color=drawing.BLACK, linestyle="--", label="theory: slope −4/5")
    ax.plot(
        sizes,
        errors,
        "o-",
        color=drawing.RED,
        linewidth=1.5,
        label=f"measured: slope {n['slope']:.2f}".replace("-", "−"),
    )
    ax.set(xscale="log", yscale="log", xlabel="training samples n", ylabel="mean squared error")
    ax.legend(frameon=False)
    drawing.tidy(ax)
    return {"consistency": figure}


def draw_uncertainty(n: Namespace) -> Figures:
    """Draw a fitted curve and its slope, each with pointwise intervals and a simultaneous band."""
    figure, axes = _panels(1, 2, 10.0, 4.5)
    for ax, of, name in zip(
        axes, ("fit", "derivative"), ("progression of the disease", "slope of the curve"), strict=True
    ):
        display = KernelCurveDisplay.from_estimator(
            n["curve"], n["blood_fat"], n["progress"], quantity=of, band="simultaneous", ax=ax,
            name="curve, and its slope",
            scatter_kwargs={"label": "patients"},
        )  # fmt: skip
        for shade, kind in zip(display.bands_, ("95 % simultaneous band", "95 % pointwise interval"), strict=True):
            shade.set_label(kind)
        ax.set(xlabel="blood fat (log triglycerides)", ylabel=name)
        ax.get_legend().remove()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return {"uncertainty": figure}


def draw_expectation(n: Namespace) -> Figures:
    """Draw conditional quantiles, prediction intervals, and their coverage on held-out rows."""
    figure, axes = _panels(1, 2, 10.0, 4.6, sharey=True)
    fan = QuantileFanDisplay.from_estimator(n["curve"], n["blood_fat"], n["progress"], ax=axes[0])
    for shade, share in zip(fan.bands_, (90, 50), strict=True):
        shade.set_label(f"{share} % of the patients")
    fan.line_.set_label("median")
    both = KernelCurveDisplay.from_estimator(
        n["curve"], n["blood_fat"], n["progress"], band="confidence", prediction=0.9, ax=axes[1],
        name="curve: the mean",
    )  # fmt: skip
    for display in (fan, both):
        display.scatter_.set_label("patients")
    both.expected_.set_label("90 % prediction interval: a new patient")
    both.bands_[0].set_label("95 % pointwise interval")
    for ax in axes:
        ax.set(xlabel="blood fat (log triglycerides)", ylabel="progression of the disease")
        ax.get_legend().remove()
        ax.label_outer()
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries, loc="outside upper center", ncols=3, frameon=False)
    held, ax = _panels(1, 1, 6.4, 4.0)
    display = CoverageDisplay.from_intervals(
        n["blood_fat"][:, 0], n["progress"], (n["lower"], n["upper"]), level=0.9, slices=6, ax=ax
    )
    display.line_.set_label("nominal: 90 %")
    sizes = display.slices.rows
    for bars in display.bars_:
        bars.set_label(f"slices of {sizes.min()} to {sizes.max()} patients, 95 % bars")
    ax.set(xlabel="blood fat (log triglycerides)", ylabel="fraction of patients inside")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small")
    return {"expectation": figure, "coverage": held}


def draw_outliers(n: Namespace) -> Figures:
    """Draw a plain and a robust fit of samples with wrong values, and the truth."""
    figure, ax = _panels(1, 1, 6.4, 4.2)
    spoiled = np.arange(len(n["spoiled"])) % 10 == 0
    for rows, color, label in ((~spoiled, drawing.GRAY, "training samples"), (spoiled, drawing.BLACK, "wrong values")):
        ax.scatter(n["x_train"][rows], n["spoiled"][rows], color=color, alpha=0.45, s=36, linewidths=0, label=label)
    ax.plot(n["x_test"], n["y_truth"], color=drawing.BLACK, linestyle="--", label="truth")
    for name, color in (("plain", drawing.BLUE), ("robust", drawing.RED)):
        error = np.mean((n[name] - n["y_truth"]) ** 2)
        ax.plot(n["x_test"], n[name], color=color, linewidth=2.4, label=f"{name} fit: {error:.3f}")
    ax.set(xlabel="x", ylabel="y")
    ax.legend(frameon=False, fontsize="small", loc="center right")
    drawing.tidy(ax)
    return {"outliers": figure}


def draw_scores(n: Namespace) -> Figures:
    """Draw the weights that four attention scores give, for two sequences with padding."""
    grid = np.stack([head.detach().numpy() for head in n["heads"]], axis=1)
    titles = ["Gaussian", "scaled dot product", "additive", "bilinear"]
    display = AttentionDisplay.from_weights(grid, title=titles, x_label="keys", y_label="queries")
    for row, length in zip(display.axes_, n["lengths"].tolist(), strict=True):
        for ax in row:
            ax.axvline(length - 0.5, color=drawing.BLACK, linestyle=":", linewidth=1.2)
    _label_bar(display)
    return {"scores": display.figure_}


def draw_masks(n: Namespace) -> Figures:
    """Draw the weights that equal scores give under three kinds of masks."""
    kinds = ("by_sequence", "by_query", "by_mask")
    grid = np.stack([n[kind].numpy() for kind in kinds], axis=1)
    display = AttentionDisplay.from_weights(
        grid, title=["lengths 2 and 3", "one length per query", "boolean mask"], x_label="keys", y_label="queries"
    )
    for row, heads in zip(display.axes_, grid, strict=True):
        for ax, weights in zip(row, heads, strict=True):
            for (i, j), weight in np.ndenumerate(weights):
                ink = "white" if weight > 0.6 else "black"
                ax.text(j, i, f"{weight:.2f}".rstrip("0").rstrip("."), ha="center", va="center", color=ink, fontsize=9)
    _label_bar(display)
    return {"masks": display.figure_}


SECTIONS = (
    draw_cues, draw_kernels, draw_data, draw_average, draw_nonparametric, draw_weights, draw_bandwidth, draw_training,
    draw_trained, draw_selection, draw_consistency, draw_uncertainty, draw_expectation, draw_outliers, draw_scores,
    draw_masks,
)  # fmt: skip


def draw_tour(folder: Path) -> None:
    """Run the code of the page, and draw its pictures and the animation into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    page = (ROOT / "tour.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    plt, namespace = import_pyplot(), {"__name__": "tour"}
    with mpl.rc_context({"font.size": 11, "axes.unicode_minus": False}):
        for code, draw in zip(blocks, SECTIONS, strict=True):  # later sections use names of earlier ones again
            exec(compile(code, "docs/tour.md", "exec"), namespace)
            plt.close("all")
            for name, figure in draw(namespace).items():
                figure.savefig(folder / f"{name}.png", dpi=96)
            if draw is draw_trained:
                animate_training(namespace, folder / "training.gif")
            plt.close("all")


if __name__ == "__main__":
    mpl.use("agg")
    draw_tour(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "images" / "tour")
