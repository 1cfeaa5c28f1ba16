"""Mixed inputs: cells and their merged states against one dense sum with all factors written out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, choose, get_kernel, pool
from kernpool.core import Factors, solve
from kernpool.kernels import get_categorical_kernel
from tests.support.capabilities import OTHERS, algorithms, fitting_columns
from tests.support.thinning import slow

PLACES = np.array([1.0, 2.0, 4.0])  # of the levels of the ordered column
KERNELS = (get_categorical_kernel("aitchison_aitken"), get_categorical_kernel("wang_van_ryzin"))
LEVELS = (4, PLACES)
LAMBDAS = (0.3, 0.45)


def tabulate(lambdas=LAMBDAS, kernels=KERNELS, levels=LEVELS):
    triples = list(zip(kernels, levels, lambdas, strict=True))
    return {
        "tables": tuple(kernel.table(some, lam) for kernel, some, lam in triples),
        "slopes": tuple(kernel.table_slope(some, lam) for kernel, some, lam in triples),
    }


def make(
    *, m=25, n=60, columns=1, degree=0, kernel="gaussian", bandwidth=0.8, variant="plain", lambdas=LAMBDAS, unseen=()
):
    """Two categorical columns, of which one cell is empty and one has a single key; queries at half of the keys."""
    generator = np.random.default_rng(0)
    key, value = generator.normal(size=(n, columns)), generator.normal(3.0, 2.0, size=(n, 2))
    code = np.stack([generator.integers(0, 4, n), generator.integers(0, 3, n)], axis=1)
    code[(code == [3, 2]).all(axis=1)] = 0
    code[(code == [1, 2]).all(axis=1)] = 0
    code[5] = [1, 2]
    query = np.where(np.arange(m)[:, None] % 2 == 0, key[:m], generator.normal(size=(m, columns)))
    query_code = np.where(np.arange(m)[:, None] % 2 == 0, code[:m], code[::-1][:m])
    for row, column in unseen:
        query_code[row, column] = -1
    options = {}
    if "weighted" in variant:
        options["key_weight"] = generator.integers(0, 4, n).astype(float)
    if "leave-one-out" in variant:
        options |= {"exclude_self": True, "self_index": np.where(np.arange(m) % 2 == 0, np.arange(m), -1)}
    if variant == "masked":
        options["attn_mask"] = generator.random((m, n)) < 0.6
    if variant == "float mask":
        options["attn_mask"] = generator.normal(size=(m, n))
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=bandwidth, degree=degree, **options)
    return problem.with_factors(Factors(query_code, code, **tabulate(lambdas)))


def dense_weights(mixed):
    """Kernel times tables times multiplicity, pair by pair; an unseen level is as unlike as any pair of the table."""
    problem = mixed
    u = (problem.query[:, None] - problem.key[None, :]) / problem.similarity.bandwidth
    weight = problem.similarity.kernel.profile(np.sqrt(np.sum(u * u, axis=2))) * problem.multiplicity()
    if problem.logit_bias is not None:
        weight = weight * np.exp(problem.logit_bias)
    for a, table in enumerate(mixed.factors.tables):
        for i, row in enumerate(weight):
            level = mixed.factors.query_code[i, a]
            row *= table.min() if level < 0 else table[level, mixed.factors.key_code[:, a]]
    return weight


def dense_fit(mixed, weight=None):
    """Weighted least squares, query by query; zeros where no key takes part."""
    problem = mixed
    weight = dense_weights(mixed) if weight is None else weight
    value = problem.value + problem.value_center
    fit = np.zeros((len(problem.query), value.shape[1]))
    for i, w in enumerate(weight):
        design = np.ones((len(w), 1))
        if problem.degree:
            design = np.hstack([design, problem.key - problem.query[i]])
        root = np.sqrt(w)[:, None]
        if w.any():
            fit[i] = np.linalg.lstsq(root * design, root * value, rcond=None)[0][0]
    return fit


def sums(mixed, algorithm="auto", **options):
    return choose(mixed, algorithm).reduce(mixed, **options)


def gradients_of(mixed, state, cotangent, wanted=("log_bandwidth", "smoothing"), *, algorithm="auto", **options):
    return choose(mixed, algorithm).pullback(mixed, state, cotangent, wanted, **options)


def with_changed(mixed, **changes):
    """Return a problem with other levels or tables."""
    return replace(mixed, factors=replace(mixed.factors, **changes))


def fit_of(mixed, algorithm="auto"):
    return solve(sums(mixed, algorithm), mixed.layout).intercept


VARIANTS = ["plain", "weighted", "leave-one-out", "weighted leave-one-out", "masked", "float mask"]


@pytest.mark.covering
@algorithms(kernel=["gaussian", "epanechnikov"], columns=[1, 2], degree=[0, 1], variant=VARIANTS)
def test_states_are_those_of_one_dense_sum(algorithm, kernel, columns, degree, variant):
    mixed = make(columns=columns, degree=degree, kernel=kernel, bandwidth=4.0, variant=variant, unseen=[(3, 0), (5, 1)])
    state, weight = sums(mixed, algorithm), dense_weights(mixed)
    unit = 1.0 if mixed.key_weight is None else mixed.weight_unit
    assert_allclose(np.exp(state.log_denominator), unit * weight.sum(axis=1), rtol=1e-11)
    if degree == 0:
        assert_allclose(state.finalize(), dense_fit(mixed, weight), rtol=1e-11)
    else:  # a window of few keys asks for slopes that no algorithm has all digits of
        assert_allclose(fit_of(mixed, algorithm), dense_fit(mixed, weight), rtol=1e-7)


def loss(mixed, cotangent, lambdas=LAMBDAS, log_bandwidth=0.0, query=0.0):
    """The sum that a pullback differentiates, by the dense reference."""
    similarity = replace(mixed.similarity, bandwidth=mixed.similarity.bandwidth * np.exp(log_bandwidth))
    problem = replace(mixed, similarity=similarity, query=mixed.query + query)
    return np.sum(cotangent * dense_fit(with_changed(problem, **tabulate(lambdas))), axis=1)


@pytest.mark.covering
@algorithms(columns=[1, 2], degree=[0, 1], variant=["plain", "weighted leave-one-out", "masked"])
def test_gradients_are_derivatives(algorithm, columns, degree, variant, generator):
    mixed = make(columns=columns, degree=degree, bandwidth=1.4, variant=variant, unseen=[(3, 0), (5, 1)])
    cotangent = generator.normal(size=(len(mixed.factors.query_code), 2))
    found = gradients_of(
        mixed, sums(mixed, algorithm), cotangent, ["log_bandwidth", "smoothing", "query"], algorithm=algorithm
    )
    step = 1e-5
    for name, axes in (("log_bandwidth", columns), ("query", columns), ("smoothing", 2)):
        for a in range(axes):
            shift = step * np.eye(axes)[a]
            if name == "smoothing":
                ends = [loss(mixed, cotangent, lambdas=LAMBDAS + sign * shift) for sign in (1, -1)]
            else:
                ends = [loss(mixed, cotangent, **{name: sign * shift}) for sign in (1, -1)]
            expected = (ends[0] - ends[1]) / (2 * step)
            assert_allclose(
                getattr(found, name)[:, a], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max(), err_msg=name
            )


@pytest.mark.covering
@pytest.mark.parametrize("lambdas", [(0.0, 0.45), (0.3, 0.0), (0.0, 0.0)])
@algorithms(columns=2, degree=[0, 1])
def test_gradients_at_a_smoothing_of_zero(algorithm, degree, lambdas, generator):
    """One-sided; fits of the few keys of one's own levels, and none at all of levels that nobody has seen."""
    mixed = make(n=200, columns=2, degree=degree, bandwidth=3.0, lambdas=lambdas, unseen=[(3, 0), (5, 1)])
    cotangent = generator.normal(size=(len(mixed.factors.query_code), 2))
    state = sums(mixed, algorithm)
    assert_array_equal(state.denominator == 0, dense_weights(mixed).sum(axis=1) == 0)
    found = gradients_of(mixed, state, cotangent, algorithm=algorithm)
    occupied = (state.denominator > 0) & (np.sum(dense_weights(mixed) > 0, axis=1) > 5)
    assert np.all(np.isfinite(found.smoothing))
    assert np.all(found.smoothing[state.denominator == 0] == 0)
    step = 1e-6
    for a, lam in enumerate(lambdas):
        at = [loss(mixed, cotangent, lambdas=np.array(lambdas) + k * step * np.eye(2)[a]) for k in (0, 1, 2)]
        if lam > 0:
            at[0] = loss(mixed, cotangent, lambdas=np.array(lambdas) - step * np.eye(2)[a])
            expected = (at[1] - at[0]) / (2 * step)
        else:
            expected = (4 * at[1] - at[2] - 3 * at[0]) / (2 * step)
        scale = np.abs(expected[occupied]).max()
        assert_allclose(found.smoothing[occupied, a], expected[occupied], rtol=1e-5, atol=1e-6 * scale)
    assert np.all(found.log_bandwidth[state.denominator == 0] == 0)
    shift = 1e-5 * np.eye(2)
    for a in range(2):
        ends = [loss(mixed, cotangent, lambdas=lambdas, log_bandwidth=sign * shift[a]) for sign in (1, -1)]
        expected = (ends[0] - ends[1]) / 2e-5
        scale = np.abs(expected[occupied]).max()
        assert_allclose(found.log_bandwidth[occupied, a], expected[occupied], rtol=1e-6, atol=1e-6 * scale)


def test_an_irrelevant_smoothing_ignores_the_column():
    kernels = (get_categorical_kernel("aitchison_aitken"), get_categorical_kernel("li_racine_ordered"))
    for degree in (0, 1):
        mixed = make(columns=2, degree=degree, variant="leave-one-out")
        tops = [kernel.largest(4) for kernel in kernels]
        mixed = with_changed(mixed, **tabulate(tops, kernels))
        bare = mixed.without_factors()
        plain = solve(sums(bare), bare.layout)
        assert_allclose(fit_of(mixed), plain.intercept, rtol=1e-9)


def test_one_level_changes_nothing_bit_by_bit():
    problem = make(columns=2).without_factors()
    code = np.zeros((25, 1), dtype=int), np.zeros((60, 1), dtype=int)
    mixed = problem.with_factors(Factors(*code, **tabulate((0.3,), KERNELS[:1], (1,))))
    assert problem.with_factors(Factors(code[0][:, :0], code[1][:, :0], (), ())).factors is None
    assert_array_equal(sums(mixed).finalize(), choose(problem).reduce(problem).finalize())
    assert np.all(gradients_of(mixed, sums(mixed), np.ones((25, 2))).smoothing == 0)


@pytest.mark.parametrize(("kind", "name", "lam"), [("u", "aitchison_aitken", 0.35), ("o", "wang_van_ryzin", 0.6)])
def test_statsmodels_agrees(kind, name, lam, generator):
    nonparametric = pytest.importorskip(
        "statsmodels.nonparametric.kernel_regression", reason="a peer of the benchmarks alone: the extra 'bench'"
    )
    kernel = get_categorical_kernel(name)
    x, level = generator.normal(size=80), generator.integers(0, 3, 80)
    place = PLACES[level] if kernel.ordered else level
    y = np.sin(x) + level + generator.normal(size=80)
    query, query_level = generator.normal(size=20), generator.integers(0, 3, 20)
    query_place = PLACES[query_level] if kernel.ordered else query_level
    theirs = nonparametric.KernelReg(
        y, np.column_stack([x, place]), var_type="c" + kind, reg_type="lc", bw=[0.4, lam], rng=0
    )
    expected = theirs.fit(np.column_stack([query, query_place]))[0]
    tables = tabulate((lam,), (kernel,), (PLACES if kernel.ordered else 3,))
    factors = Factors(query_level[:, None], level[:, None], **tables)
    mixed = Problem.from_arrays(query, x, y, bandwidth=0.4, factors=factors)
    assert_allclose(sums(mixed).finalize()[:, 0], expected, rtol=1e-10)


def test_a_cell_that_counts_nothing_but_is_near_gives_no_nan():
    """All keys of one's own level are 60 bandwidths away: the truth, exp(1800) and more, is beyond any float."""
    kernel, code = get_categorical_kernel("li_racine"), np.array([[0], [0], [1]])
    for degree in (0, 1):
        problem = Problem.from_arrays([0.0], [60.0, 61.0, 0.0], [1.0, 2.0, 5.0], degree=degree)
        mixed = problem.with_factors(Factors(code[:1], code, **tabulate((0.0,), (kernel,), (2,))))
        for algorithm in ("reference", "brute", "sweep", "kd_tree"):
            found = gradients_of(mixed, sums(mixed, algorithm), np.ones((1, 1)), algorithm=algorithm)
            assert 1e200 < found.smoothing[0, 0] < np.inf
            assert np.all(np.isfinite(found.log_bandwidth))


def test_factors_too_small_for_a_float_still_count():
    """Forty columns of 1e-10 each: the product underflows, its logarithm does not."""
    kernel, k = get_categorical_kernel("li_racine"), 40
    problem = Problem.from_arrays([0.0], [0.0, 0.0], [1.0, 3.0])
    query, keys = np.zeros((1, k), dtype=int), np.ones((2, k), dtype=int)
    mixed = problem.with_factors(Factors(query, keys, **tabulate((1e-10,) * k, (kernel,) * k, (2,) * k)))
    assert sums(mixed).finalize() == 2.0


@algorithms()
def test_cells_of_faint_key_weights_keep_their_digits(algorithm, generator):
    """Algorithms count on weights near 1; a cell of weights near 1e-200 is a problem with another unit."""
    key = generator.normal(size=(40, fitting_columns(algorithm)))
    value, level = generator.normal(size=40), np.arange(40) % 2
    weight = np.where(level == 0, 1.0, 1e-200) * generator.uniform(1, 2, 40)
    weight[:6] = 0.0
    problem = Problem.from_arrays(key[:8], key, value, key_weight=weight)
    code, kernel = level[:, None], get_categorical_kernel("li_racine")
    mixed = problem.with_factors(Factors(code[:8], code, **tabulate((0.0,), (kernel,), (2,))))
    for i, pooled in enumerate(sums(mixed, algorithm).finalize()[:, 0]):
        same = level == level[i]
        expected = pool(key[i : i + 1], key[same], value[same], key_weight=weight[same] / weight[same].max())
        assert pooled == pytest.approx(expected[0], rel=1e-12)


@pytest.mark.parametrize("lambdas", [LAMBDAS, (0.0, 0.0)])
def test_progress_counts_once(lambdas):
    mixed, seen = make(m=50, n=400, lambdas=lambdas), []
    state = sums(mixed, "brute", progress=lambda *report: seen.append(report))
    for _ in range(2):
        done, total = np.transpose(seen)
        assert len(set(total)) == 1
        assert np.all(np.diff(done) > 0)
        assert done[-1] == total[-1]
        seen.clear()
        gradients_of(mixed, state, np.ones((50, 2)), algorithm="brute", progress=lambda *report: seen.append(report))


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=3, max_size=3))
def test_any_codes_and_smoothings(seed, lambdas):
    """Hypothesis looks for codes, unseen levels and smoothings for which cells differ from the dense sum."""
    generator = np.random.default_rng(seed)
    kernels = [get_categorical_kernel(name) for name in ("li_racine", "aitchison_aitken", "li_racine_ordered")]
    levels = (2, 3, PLACES)
    lambdas = [lam * kernel.largest(3) for lam, kernel in zip(lambdas, kernels, strict=True)]
    query, key, value = generator.normal(size=(6, 1)), generator.normal(size=(12, 1)), generator.normal(size=12)
    codes = [generator.integers(low, [2, 3, 3], size=(rows, 3)) for low, rows in ((-1, 6), (0, 12))]
    mixed = Problem.from_arrays(query, key, value).with_factors(Factors(*codes, **tabulate(lambdas, kernels, levels)))
    state, weight = sums(mixed, "reference"), dense_weights(mixed)
    assert_allclose(np.exp(state.log_denominator), weight.sum(axis=1), rtol=1e-12)
    assert_allclose(state.finalize("zero"), dense_fit(mixed, weight), rtol=1e-9, atol=1e-12)


def test_parts_of_a_problem_by_index_keep_own_keys_and_masks(generator):
    problem = make(variant="leave-one-out").without_factors()
    problem = replace(problem, attn_mask=generator.random(problem.shape) < 0.5)
    queries, keys = np.array([4, 0, 9]), np.array([8, 4, 7])
    part = problem.block(queries, keys)
    assert_array_equal(part.self_index, [1, -1, -1])
    assert_array_equal(part.attn_mask, problem.attn_mask[np.ix_(queries, keys)])
    assert_array_equal(part.key, problem.key[keys])
    assert_array_equal(problem.block(slice(2, 6), slice(3, 6)).self_index, [-1, -1, 1, -1])


@pytest.mark.covering
@pytest.mark.parametrize("lambdas", [LAMBDAS, *slow((0.0, 0.45))])
@algorithms(OTHERS, columns=[1, 2])
def test_larger_cells_too(algorithm, columns, lambdas):
    """Where fused loops, boxes, series and transforms are at work, and not the few pairs that they leave to others."""
    mixed = make(m=700, n=4000, columns=columns, bandwidth=0.5, lambdas=lambdas)
    weight = dense_weights(mixed)
    expected = (weight @ mixed.value) / weight.sum(axis=1)[:, None] + mixed.value_center
    state = sums(mixed, algorithm)
    assert_allclose(state.finalize(), expected, rtol=1e-10, atol=1e-10)
    reference = sums(mixed, "reference")
    found, expected = (
        gradients_of(mixed, reference, np.ones((700, 2)), algorithm=name) for name in (algorithm, "reference")
    )
    for name in ("log_bandwidth", "smoothing"):
        target = getattr(expected, name)
        assert_allclose(getattr(found, name), target, rtol=1e-9, atol=1e-9 * np.abs(target).max())


@pytest.mark.parametrize("degree", [0, 1])
def test_values_far_from_zero_keep_their_digits(degree):
    """Cells have one center, and not each its own."""
    near = make(columns=2, degree=degree, bandwidth=2.0)
    far = replace(near, value_center=near.value_center + 1e6)
    bare = [replace(each, value_center=np.zeros(2)) for each in (near, far)]
    fits = [solve(sums(problem), problem.layout) for problem in bare]
    assert_array_equal(fits[0].slope, fits[1].slope)
    assert_allclose(fit_of(far) - 1e6, fit_of(near), atol=1e-8)
    cotangent = np.ones((25, 2))
    gradients = [gradients_of(each, sums(each), cotangent) for each in (near, far)]
    for name in ("log_bandwidth", "smoothing"):
        expected = getattr(gradients[0], name)
        assert_allclose(getattr(gradients[1], name), expected, atol=1e-8 * np.abs(expected).max())


def test_a_kernel_without_slope_has_derivatives_by_smoothings():
    mine = replace(get_kernel("gaussian"), name="no slope", log_slope=None)
    mixed, smooth = make(kernel=mine), make()
    cotangent = np.ones((25, 2))
    found = gradients_of(mixed, sums(mixed), cotangent, "smoothing")
    assert found.log_bandwidth is None
    expected = gradients_of(smooth, sums(smooth), cotangent, "smoothing").smoothing
    assert_allclose(found.smoothing, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="has no log_slope"):
        gradients_of(mixed, sums(mixed), cotangent)


def test_what_is_refused():
    mixed = make()
    plan = choose(mixed.without_factors())
    for ask, message in (
        (
            lambda: gradients_of(mixed, sums(mixed), np.ones((25, 2)), "lambda"),
            r"wanted must be some of .* \['lambda'\]",
        ),
        (lambda: gradients_of(mixed, sums(mixed), np.ones(25), "smoothing"), "cotangent must have shape"),
        (lambda: sums(make(columns=2), "sweep"), "use algorithm='auto'"),
        (lambda: plan.reduce(mixed), r"chosen for a problem without factors.*choose\(problem\)"),
        (
            lambda: plan.pullback(mixed, sums(mixed), np.ones((25, 2)), ["query"]),
            "chosen for a problem without factors",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
