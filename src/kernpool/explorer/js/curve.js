/** The curve: coarse in the frame of a change, with as many places as the time allows, and fine in idle slices after. */
import { spaced } from "./panel.js";

const BUDGET = 7; // milliseconds of a frame for the curve
const SLICE = 5; // milliseconds of an idle slice

/**
 * @param {object} context
 * @param {(places: Float64Array, values: Float64Array) => void} show values: output by output
 * @param {(found: {bins, error, count} | null) => void} tell of a binned curve how it differs from the exact one
 */
export function makeCurve({ pool, store, data, idle }, show, tell) {
  let known = "";
  let last = null;
  let cost = 1e-4 * data().n; // milliseconds a place, measured from the first curve on
  let cancel = () => {};

  const refine = (places, query, column) => {
    const now = pool();
    const [m, outputs] = [places.length, data().outputs.length];
    const values = new Float64Array(outputs * m);
    let done = 0;
    return () => {
      const step = Math.max(4, Math.floor(SLICE / cost));
      const part = places.subarray(done, done + step);
      const found = now.curve(column, part, query);
      for (let j = 0; j < outputs; j++) values.set(found.subarray(j * part.length, (j + 1) * part.length), j * m + done);
      done += step;
      if (done < m) return true;
      show(places, values);
      if (now.binned) cancel = idle(comparison(now, places, query));
      return false;
    };
  };

  const comparison = (now, places, query) => {
    const steps = now.compare(places, query);
    return () => {
      const step = steps.next();
      if (step.done) tell({ bins: now.binned, ...step.value });
      return !step.done;
    };
  };

  return {
    /** Draw anew unless nothing but the query's place along the column has changed. */
    update(width, ends) {
      const { query, column } = store.get();
      const others = query.numeric.filter((_, a) => a !== column);
      const key = JSON.stringify([width, ends, column, others, query.codes]);
      if (key === known && pool() === last) return;
      [known, last] = [key, pool()];
      cancel();
      tell(null);
      const coarse = spaced(...ends, Math.max(48, Math.min(240, Math.floor(BUDGET / cost))));
      const start = performance.now();
      const values = pool().curve(column, coarse, query);
      cost = 0.5 * cost + 0.5 * Math.max(1e-4, (performance.now() - start) / coarse.length);
      show(coarse, values);
      if (coarse.length < width) cancel = idle(refine(spaced(...ends, Math.min(800, Math.round(width))), query, column));
    },
    stop: () => cancel(),
  };
}
