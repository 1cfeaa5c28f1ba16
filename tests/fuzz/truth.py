"""Dense sums in long double: slow, short, and with nothing in common with the package but the formulas of kernels.

Differences ``q - k`` are those of float64, which is the common ground of all algorithms, and so is which keys a boxcar
lets in; everything after that has 64 bits of mantissa where the processor has them.
"""

import numpy as np

from kernpool.core import monomials

LONG = np.longdouble
WELL_POSED = 1e-3  # eigenvalue, as `conditioning` returns it, from which on local planes are compared


def weights(problem, rows, factors=None):
    """Return the weights of some queries, shape (rows, n), each row in a unit of its own, and that unit's logarithm."""
    block = problem.block(rows)
    times, similarity = block.multiplicity().astype(LONG), block.similarity
    if factors is not None:
        times = times * factors[rows]
    kernel = similarity.kernel
    u = [np.abs(offset) for offset in offsets(block)]
    distances = u if similarity.kernel.composition == "product" else [np.sqrt(sum(one * one for one in u))]
    if kernel.profile_name == "boxcar":
        profile = similarity.profiles(block.query, block.key).astype(LONG)
        logit = np.where(profile > 0, LONG(0), -np.inf)
    elif kernel.is_compact:
        profile = np.prod([kernel.profile(one) for one in distances], axis=0)
        with np.errstate(divide="ignore"):
            logit = np.log(profile)
    else:
        logit = sum(kernel.log_profile(one) for one in distances)
    if block.logit_bias is not None:
        logit = logit + block.logit_bias
    logit = np.where(times > 0, logit, -np.inf)
    shift = logit.max(axis=1)
    shift = np.where(np.isneginf(shift), LONG(0), shift)
    return times * np.exp(logit - shift[:, None]), shift


def offsets(block):
    """Return ``(k - q) / h`` column by column."""
    return [
        (block.key[None, :, a] - block.query[:, a, None]).astype(LONG) / block.similarity.width(a)
        for a in range(block.key.shape[1])
    ]


def pooled(problem, rows, factors=None):
    """Return the pooled values of some queries, centered, and the logarithms of their denominators; NaN if empty."""
    weight, shift = weights(problem, rows, factors)
    total = weight.sum(axis=1)
    with np.errstate(all="ignore"):
        mean = (weight @ problem.value.astype(LONG)) / total[:, None]
        return mean, shift + np.log(total)


def fitted(problem, rows):
    """Return the local linear or quadratic fits of some queries, centered, and how well the keys determine them.

    The second number is the smallest eigenvalue of the covariance of offsets, each column in units of its root mean
    square: `kernpool.core.local_fit` says why it matters. Products of offsets from the mean are further columns, in
    units of products of offsets from the query.
    """
    weight, _ = weights(problem, rows)
    with np.errstate(all="ignore"):
        share = weight / weight.sum(axis=1, keepdims=True)
    t = np.stack(offsets(problem.block(rows)), axis=2)
    value = problem.value.astype(LONG)
    with np.errstate(all="ignore"):
        mean_t, mean = np.einsum("mn,mnd->md", share, t), share @ value
        unit = np.sqrt(np.einsum("mn,mnd->md", share, t * t))
        unit = np.where(unit > 0, unit, LONG(1))
        centered, at = (t - mean_t[:, None]) / unit[:, None], -mean_t / unit
        if problem.degree == 2:
            pairs = monomials(t.shape[2], 2)
            products = [np.stack([x[..., a] * x[..., b] for a, b in pairs], -1) for x in (t, centered, at)]
            unit_of_pair = np.sqrt(np.einsum("mn,mnp->mp", share, products[0] ** 2))
            unit_of_pair = np.stack([unit_of_pair[:, i] / unit[:, a] / unit[:, b] for i, (a, b) in enumerate(pairs)], 1)
            unit_of_pair = np.maximum(unit_of_pair, LONG(1))
            middle = np.einsum("mn,mnp->mp", share, products[1])
            centered = np.concatenate([centered, (products[1] - middle[:, None]) / unit_of_pair[:, None]], axis=2)
            at = np.concatenate([at, (products[2] - middle) / unit_of_pair], axis=1)
        weighted = share[:, :, None] * centered
        design = np.einsum("mnd,mne->mde", weighted, centered).astype(float)
        target = np.einsum("mnd,mnc->mdc", weighted, value[None] - mean[:, None]).astype(float)
    fits, least = mean.astype(float), np.zeros(len(mean))
    for i in np.flatnonzero(np.isfinite(design).all(axis=(1, 2))):
        least[i] = np.linalg.eigvalsh(design[i])[0]
        if least[i] > 1e-6:
            slope = np.linalg.solve(design[i], target[i])
            fits[i] += at[i].astype(float) @ slope
    return fits, least


def conditioning(state, layout):
    """Return the smallest eigenvalue that decides about the plane of each query, from its sums; zero if it is empty."""
    mean, d = state.finalize("zero"), layout.columns
    if layout.degree == 2:
        return _conditioning_of_quadratics(mean, layout)
    upper, lower = np.triu_indices(d)
    second = np.zeros((len(mean), d, d))
    second[:, upper, lower] = second[:, lower, upper] = mean[:, layout.second]
    unit = np.sqrt(np.maximum(np.diagonal(second, axis1=1, axis2=2), 0.0))
    unit = np.where(unit > 0, unit, 1.0)
    offset = mean[:, layout.first] / unit
    design = second / unit[:, :, None] / unit[:, None, :] - offset[:, :, None] * offset[:, None, :]
    return np.linalg.eigvalsh(design)[:, 0]


def _conditioning_of_quadratics(mean, layout):
    """With products of offsets from the mean as further columns."""
    with np.errstate(all="ignore"):
        central = layout.moved(np.ones(len(mean)), mean, -mean[:, layout.first])
    single, pairs = monomials(layout.columns, 1), monomials(layout.columns, 2)
    places = {one: place for order in (1, 2, 3, 4) for one, place in layout.places(order).items()}
    columns = [*single, *pairs]
    design = np.stack([[central[:, places[tuple(sorted(a + b))]] for b in columns] for a in columns])
    middle = np.stack([np.zeros(len(mean)) if len(a) == 1 else central[:, places[a]] for a in columns])
    design = np.moveaxis(design - middle[:, None] * middle[None, :], 2, 0)
    squares = {a: mean[:, places[a + a]] for a in single}
    unit = [np.maximum(mean[:, places[tuple(sorted(a + a))]], squares[a[:1]] * squares[a[1:]]) for a in pairs]
    with np.errstate(all="ignore"):
        unit = np.sqrt(np.stack([*squares.values(), *unit], axis=1))
        design /= unit[:, :, None] * unit[:, None, :]
    sound = np.isfinite(design).all(axis=(1, 2))
    least = np.zeros(len(mean))
    least[sound] = np.linalg.eigvalsh(design[sound])[:, 0]
    return least
