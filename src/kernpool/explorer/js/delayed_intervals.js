/** Confidence intervals and the band of the curve, computed once nothing has changed for a while. */
import { bandAlong } from "./band.js";
import { leftOut } from "./leave_one_out.js";
import { spaced } from "./panel.js";
import { studentQuantile } from "./student_t.js";

const LEVEL = 0.95;
const PLACES = 121;
const QUIET = 250; // milliseconds
const FEWEST = 3; // degrees of freedom of the noise; with fewer a band is teeth as high as the chart

/** Whether the formulas are those of the rows: numbers, independent of each other, and all of them here. */
export function canBeSure(data, payload) {
  return !data.classes && !payload.group && Math.max(data.n, payload.rows ?? 0) <= payload.limits.exact;
}

/**
 * @param {(found: {places, band: {lower, upper}, wide: {lower, upper} | null} | null) => void} show null: not known yet
 * @returns {{update: () => void, stop: () => void}}
 */
export function makeSure({ pool, data, store, idle }, show) {
  let known = [];
  let timer = 0;
  let cancel = () => {};

  function* find(now, column, query) {
    const { residual } = yield* leftOut(now, data());
    const places = spaced(data().low[column], data().high[column], PLACES);
    const found = yield* bandAlong(now, residual, column, places, query, { level: LEVEL, simultaneous: true });
    const t = found.df.map((df) => (df >= FEWEST ? studentQuantile(0.5 * (1 - LEVEL), df) : NaN));
    for (const side of ["lower", "upper"]) found[side] = found[side].map((end, i) => (found.df[i] >= FEWEST ? end : NaN));
    const ends = (side) => found.center.map((center, i) => center + side * t[i] * found.standardError[i]);
    return { places, band: { lower: ends(-1), upper: ends(1) }, wide: found.reason ? null : found };
  }

  const start = (...parts) => {
    const steps = find(...parts);
    cancel = idle(() => {
      const end = performance.now() + 5;
      for (;;) {
        const step = steps.next();
        if (step.done) show(step.value);
        if (step.done) return false;
        if (performance.now() > end) return true;
      }
    });
  };

  const stop = () => {
    clearTimeout(timer);
    cancel();
  };
  return {
    update() {
      const { column, query } = store.get();
      const now = [pool(), column, JSON.stringify([query.numeric.filter((_, a) => a !== column), query.codes])];
      if (now.every((part, i) => part === known[i])) return;
      known = now;
      stop();
      show(null);
      timer = setTimeout(() => start(pool(), column, query), QUIET);
    },
    stop,
  };
}
