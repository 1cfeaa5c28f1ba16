/** What a query sees where an engine knows all rows, and the page draws some of them. */
import { makeAsker } from "./ask.js";

/**
 * @param {object} parts {host, store, local: () => what the query sees of the rows that are drawn}
 * @returns {() => object} of the engine once it has answered, with the heaviest `rows`; until then of the rows drawn.
 *     An answer changes `answered` of the store.
 */
export function makeRemoteHere({ host, store, local }) {
  let asked = "";
  let answer = null;
  const ask = makeAsker(host, (found, request) => {
    if (found.error) return;
    answer = found;
    store.set({ answered: JSON.stringify(request) });
  });
  return () => {
    const { settings, query } = store.get();
    const request = { kind: "query", settings, query };
    const key = JSON.stringify(request);
    if (key !== asked) {
      asked = key;
      answer = null;
      ask(request);
    }
    return answer ? { ...local(), ...ofEngine(answer) } : local();
  };
}

/** An answer of the engine like what a pool says of a query. */
function ofEngine({ value, slope, effectiveSize, reach, rows, weight, key, target }) {
  return {
    value: value.map((one) => one ?? NaN), slope: slope ? slope.flat() : null, effectiveSize, reach, empty: !reach, nearest: -1,
    rows: rows.map((row, k) => ({ row, weight: weight[k], key: key[k], target: target[k] })),
  };
}
