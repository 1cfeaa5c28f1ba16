"""Test files that run in `.ci/run` only, so that `make test` ends within minutes in a fresh clone.

`make test` keeps, of every subpackage, the comparisons with its slow reference implementation, the refusals, and the
public functions and classes. The files listed here test special cases of the same code: other situations, other loops
of an algorithm (each of which is compiled first), files edited byte by byte, resampling. A file that is named on the
command line runs whole.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LATER = {
    "algorithms": ("fourier/test_nufft",
                   "sweep/test_gradients", "test_tol", "test_verification", "tree/test_narrow"),
    "bandwidth": ("test_all_pairs", "test_groups", "test_held_out", "test_leverage", "test_log_loss",
                  "test_regularised", "test_search", "test_search_steps"),
    "cli": ("test_chunked", "test_compare", "test_expectation", "test_groups", "test_testing"),
    "conformal": ("test_clusters", "test_cqr", "test_refits", "test_robust_fits", "test_unsearched"),
    "core": ("test_quadratic_fit",),
    "dask": ("test_distribution", "test_inference", "test_prediction"),
    "data": ("test_exotic_columns", "test_large_integers", "test_temporaries"),
    "displays": ("test_how_sure", "test_next_value"),
    "docs": ("test_blocks",),
    "distribution": ("test_chunks", "test_scores", "test_smooth"),
    "estimators": ("stacking/test_ridge_kernels",
                   "test_circular_planes", "test_class_sets", "test_conditional", "test_containers",
                   "test_expected_error", "test_extrapolate", "test_gap", "test_groups", "test_mixed",
                   "test_rank_warnings", "test_robust",
                   "test_search_sample", "test_windows"),
    "inference": ("test_bootstrap", "test_clusters", "test_columns", "test_draws",
                  "test_hypothesis_tests", "test_places_without_knowledge", "test_probabilities",
                  "test_remembered", "test_row_diagnostics", "test_specification", "test_summary"),
    "pooling": ("test_groups", "test_lowess", "test_memory_maps", "test_widths"),
    "torch": ("test_beside_pool", "test_operator", "test_similarities", "test_streams"),
}  # fmt: skip
FILES = frozenset(TESTS / subpackage / f"{name}.py" for subpackage, names in LATER.items() for name in names)


def mark_later_slow(items):
    """Mark what lies in these files, and is not slow anyway, as slow and as ``later``, which the gate knows it by.

    Parameters
    ----------
    items : list of pytest.Item
        What was collected.
    """
    for item in items:
        if item.path in FILES and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.later)
