"""How good is a similarity that learns? Five-fold R^2 with defaults: beside bandwidths per column, and forests.

python benchmarks/learned.py            about ten minutes
python benchmarks/learned.py --quick    one split
"""

import sys
import time

import numpy as np
from measure import finish, report
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernpool import LearnedPoolingRegressor, NadarayaWatsonRegressor

SPLITS = (0, 1, 2)
BELOW_COLUMNS = 0.02

FRIEDMAN, DIABETES = "friedman1 (n = 2000, noise 1)", "diabetes (n = 442)"
DATA = {
    FRIEDMAN: make_friedman1(n_samples=2000, noise=1.0, random_state=0),
    DIABETES: load_diabetes(return_X_y=True),
}
LINEAR, COLUMNS, FOREST = (
    '`LearnedPoolingRegressor(similarity="linear")`',
    "`NadarayaWatsonRegressor()`",
    "`RandomForestRegressor(300)`",
)
MODELS = {
    LINEAR: LearnedPoolingRegressor(similarity="linear", random_state=0),
    COLUMNS: NadarayaWatsonRegressor(),
    FOREST: RandomForestRegressor(300, random_state=0),
}


def epochs(outcome) -> str:
    """Say which epoch was kept in each fold."""
    learned = [pipeline[-1] for pipeline in outcome["estimator"]]
    return " ".join(str(model.best_epoch_) for model in learned) if hasattr(learned[0], "best_epoch_") else ""


def benchmark(quick: bool) -> None:
    splits = SPLITS[:1] if quick else SPLITS
    rows, missed = [], []
    for data, (X, y) in DATA.items():
        scores = {}
        for name, model in MODELS.items():
            started, kept = time.perf_counter(), []
            scores[name] = np.zeros(len(splits))
            for i, split in enumerate(splits):
                folds = KFold(5, shuffle=True, random_state=split)
                pipeline = make_pipeline(StandardScaler(), model)
                outcome = cross_validate(pipeline, X, y, cv=folds, return_estimator=True)
                scores[name][i] = outcome["test_score"].mean()
                kept.append(epochs(outcome))
            seconds = (time.perf_counter() - started) / (5 * len(splits))
            cells = " | ".join(f"{score:.4f}" for score in scores[name])
            rows.append(f"| {data} | {name} | {cells} | {scores[name].mean():.4f} | {kept[0]} | {seconds:.1f} |")
            print(rows[-1], flush=True)
        bars = {COLUMNS: 0.0, FOREST: 0.0} if data == FRIEDMAN else {COLUMNS: BELOW_COLUMNS}
        for rival, below in bars.items():
            short = (scores[rival] - below - scores[LINEAR]).max()
            missed += [f"{data}: {short:.4f} short of {rival}"] if short > 0 or (short == 0 and not below) else []
    head = ["", " data ", " model ", *(f" split {split} " for split in splits)]
    head += [" mean ", " epochs kept, split 0 ", " seconds per fold ", ""]
    table = "\n".join(["|".join(head), "|---" * (len(head) - 2) + "|", *rows])
    text = (
        "# Accuracy of learned similarities\n\nFive-fold R^2, defaults only, standardised columns, one "
        f"process.\n\n{table}\n\n"
        "Bars, on every split: on friedman1 the linear map is above the forest and above one bandwidth per column; on "
        f"diabetes it is at most {BELOW_COLUMNS} below one bandwidth per column. Epoch 0 is the closed form, where "
        "learning starts."
    )
    report("learned", text, keep=not quick)
    finish(missed)


if __name__ == "__main__":
    benchmark("--quick" in sys.argv)
