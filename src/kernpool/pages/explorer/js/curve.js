/** The curve: coarse in the frame of a change, with as many places as the time allows, and fine in idle slices after. */

const BUDGET = 7; // milliseconds of a frame for the curve
const SLICE = 5; // milliseconds of an idle slice
const REMOTE_PLACES = 400; // that an engine is asked for

/**
 * @param {object} context
 * @param {(places: Float64Array, values: Float64Array) => void} show values: output by output
 */
export function makeCurve({ pool, store, data, idle, remote }, show) {
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
      return false;
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
      const coarse = evenly(ends, Math.max(48, Math.min(240, Math.floor(BUDGET / cost))));
      const start = performance.now();
      const values = pool().curve(column, coarse, query);
      cost = 0.5 * cost + 0.5 * Math.max(1e-4, (performance.now() - start) / coarse.length);
      show(coarse, values);
      if (remote) remote.curve(column, evenly(ends, REMOTE_PLACES), query, show);
      else if (coarse.length < width) cancel = idle(refine(evenly(ends, Math.min(800, Math.round(width))), query, column));
    },
    stop: () => cancel(),
  };
}

function evenly([low, high], m) {
  return Float64Array.from({ length: m }, (_, i) => low + ((high - low) * i) / (m - 1));
}
