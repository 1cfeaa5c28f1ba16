/** The engine behind a page that draws a part of the rows: its answers take the place of what the page can compute. */

/**
 * @param {object} parts {host, payload, data, store}
 * @returns {null | {here: (local: object) => object, curve: Function}} null where the page holds all rows
 */
export function makeRemote({ host, payload, data, store }) {
  if (!host?.ask || payload.rows <= data().n) return null;
  const ask = makeNewest(host.ask);
  let known = ""; // the question that `answer` belongs to
  let answer = null;
  return {
    /** What the query sees: of the engine once it has answered, until then of the rows that are drawn. */
    here(local) {
      const { settings, query, column } = store.get();
      const request = { kind: "query", settings, query };
      const key = JSON.stringify(request);
      if (key !== known) {
        known = key;
        answer = null;
        ask("query", request, (found) => {
          answer = found;
          store.set({ answered: key });
        });
      }
      return answer ? seen(answer, local, payload, column) : { ...local, n: payload.rows, waiting: true };
    },
    /** Ask for the curve at places; `show` hears of it unless something newer is asked. */
    curve(column, places, query, show) {
      const request = { kind: "curve", column, places: Array.from(places), query, settings: store.get().settings };
      ask("curve", request, ({ value }) => show(places, Float64Array.from(value.flat(), (one) => one ?? NaN)));
    },
  };
}

/** The engine's answer in the form of `pool.at`; circles are drawn for the rows that the page has. */
function seen(answer, local, payload, column) {
  const { value, slope, effectiveSize, reach, rows, weight, key, target } = answer;
  const classes = payload.target.classes;
  const heaviest = rows.map((row, k) => ({
    row,
    x: key[k][column],
    y: classes ? classes[target[k].indexOf(1)] : target[k][0],
    weight: weight[k],
  }));
  return {
    ...local, effectiveSize, reach, heaviest,
    n: payload.rows,
    empty: reach === 0,
    value: value.map((one) => one ?? NaN),
    slope: slope && slope.flat(),
  };
}

/** Ask one question of a kind at a time; of those that come meanwhile only the newest. */
function makeNewest(ask) {
  const busy = new Set();
  const next = new Map();
  const run = async (kind, request, hear) => {
    busy.add(kind);
    try {
      const answer = await ask(request);
      if (!next.has(kind)) hear(answer);
    } finally {
      busy.delete(kind);
      const waiting = next.get(kind);
      next.delete(kind);
      if (waiting) run(kind, ...waiting);
    }
  };
  return (kind, ...question) => {
    if (busy.has(kind)) next.set(kind, question);
    else run(kind, ...question);
  };
}
