"""Questions that tests ask the page's functions, how near its numbers are to the engine's, and a line of rows."""

from functools import cache

import numpy as np

from tests.support.explorer_payloads import packed

# Of what lies between weights of a fit and the rounding of its logits, which are up to 745.
WEIGHTS, VALUES = 1e-12, 1e-10

ANSWER = """(payloads, cases) => {
  const data = payloads.map(readData);
  const join = (parts) => pack(Float64Array.from(parts.flatMap((part) => Array.from(part))));
  return cases.map(({ payload, settings, numeric, codes }) => {
    const rows = unpack(numeric), d = data[payload].numeric.length, m = rows.length / d, levels = unpack(codes);
    const queries = Array.from({ length: m }, (_, i) => ({
      numeric: Array.from(rows.subarray(i * d, (i + 1) * d)),
      codes: Array.from(levels.subarray((i * levels.length) / m, ((i + 1) * levels.length) / m)),
    }));
    const pool = makePool(data[payload], settings), seen = queries.map((query) => pool.at(query));
    const places = Float64Array.from(queries, (query) => query.numeric[0]);
    return {
      weight: join(seen.map((one) => one.weight)),
      value: join(seen.map((one) => one.value)),
      values: pack(pool.values(queries)),
      curve: pack(pool.curve(0, places, queries[0])),
      slope: settings.degree ? join(seen.map((one) => one.slope)) : null,
      counts: join(seen.map((one) => [one.effectiveSize, one.reach, one.nearest, Number(one.empty), one.rank])),
    };
  });
}"""

LEFT_OUT = """(payload, settings) => {
  const data = readData(payload), steps = leftOut(makePool(data, settings), data);
  let step = steps.next();
  while (!step.done) step = steps.next();
  const { value, residual, error, empty } = step.value;
  return { value: pack(value), residual: pack(residual), error, empty };
}"""
BAND = """(payload, settings, column, places, query, options) => {
  const data = readData(payload), pool = makePool(data, settings), drain = (steps) => {
    let step = steps.next();
    while (!step.done) step = steps.next();
    return step.value;
  };
  const { residual } = drain(leftOut(pool, data));
  const found = drain(bandAlong(pool, residual, column, Float64Array.from(places), query, options));
  const packed = ["center", "lower", "upper", "standardError", "df"].map((name) => [name, pack(found[name])]);
  return { ...Object.fromEntries(packed), critical: found.critical, reason: found.reason };
}"""


def case(payload, query, settings, codes=()):
    return {
        "payload": payload,
        "settings": settings,
        "numeric": packed(np.asarray(query, dtype=float)),
        "codes": packed(np.asarray(codes, dtype=int)),
    }


def assert_close(found, expected, tolerance, what):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), err_msg=what)
    wrong = np.abs(found - expected) > tolerance
    worst = np.argwhere(wrong)[:3].tolist()
    assert not wrong.any(), f"{what} at {worst}: {found[wrong][:3]} is not {expected[wrong][:3]}"


@cache
def line():
    """One column, denser in the middle, with two equal rows, an isolated one, and queries on rows and off the data."""
    g = np.random.default_rng(1)
    x = np.sort(np.r_[g.uniform(size=60), g.normal(0.5, 0.05, 40), 0.25, 0.25, 1.4])[:, None]
    y = np.sin(6 * x[:, 0]) + 100 + 0.2 * g.normal(size=len(x))
    query = np.r_[np.linspace(-0.5, 1.6, 22), x[[0, 30, -1], 0], 0.25][:, None]
    return x, y, query
