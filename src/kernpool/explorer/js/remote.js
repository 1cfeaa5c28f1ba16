/** Client of the Python server, for pages that draw a part of the rows: numbers and curves of all rows come from there. */

/**
 * @param {object} parts {host, payload, data, store}
 * @returns {null | {here: (local: object) => object, curve: Function}} null where the page holds all rows
 */
export function makeRemote({ host, payload, data, store }) {
  if (!host?.ask || payload.samples || payload.rows <= data().n) return null;
  const ask = makeNewest(host.ask);
  // Where nobody is at the address `fetch` throws a TypeError; other errors have a reason that Python gave.
  const lose = (error) => store.set({ lost: error instanceof TypeError ? "" : error.message });
  let known = ""; // the question that `answer` belongs to
  let answer = null;
  return {
    /** What the query sees. Until the engine has answered nothing is known but weights among the rows that are drawn. */
    here(local) {
      const { settings, query, column } = store.get();
      const request = { kind: "query", settings, query };
      const key = JSON.stringify(request);
      if (key !== known) {
        known = key;
        answer = null;
        const hear = (found) => {
          answer = found;
          store.set({ answered: key, lost: null });
        };
        ask("query", request, hear, lose);
      }
      return answer ? seen(answer, local, payload, column) : unknown(local, payload);
    },
    /** Ask for the curve at places; `show` hears of it, or of null, unless something newer is asked. */
    curve(column, places, query, show) {
      const request = { kind: "curve", column, places: Array.from(places), query, settings: store.get().settings };
      const hear = ({ value }) => {
        show(places, Float64Array.from(value.flat(), (one) => one ?? NaN));
        store.set({ lost: null });
      };
      ask("curve", request, hear, (error) => {
        show(null);
        lose(error);
      });
    },
  };
}

/** Why the engine does not answer, in words; nothing where it does. */
export function whyLost(lost, words) {
  if (lost === null) return "";
  return lost ? words("engine.error", { why: lost }) : words("engine.lost");
}

/** The engine's answer in the form of `pool.at`; discs are shares among the rows that are drawn: of many more, areas of all vanish. */
function seen(answer, local, payload, column) {
  const { value, slope, effectiveSize, reach, rows, weight, key, target, nearest } = answer;
  const classes = payload.target.classes;
  const heaviest = rows.map((row, k) => ({
    row,
    x: key[k][column],
    y: classes ? classes[target[k].indexOf(1)] : target[k][0],
    weight: weight[k],
  }));
  return {
    weight: local.weight, effectiveSize, reach, heaviest,
    n: payload.rows,
    nearest: nearest.row,
    nearestKey: nearest.key,
    empty: reach === 0,
    value: value.map((one) => one ?? NaN),
    slope: slope && slope.flat(),
  };
}

function unknown({ weight, value }, { rows }) {
  const missing = { effectiveSize: NaN, reach: NaN, heaviest: [], nearest: -1, slope: null, value: value.map(() => NaN) };
  return { ...missing, weight, n: rows, empty: false, waiting: true };
}

/** Ask one question of a kind at a time; of those that come meanwhile only the newest. */
function makeNewest(ask) {
  const busy = new Set();
  const next = new Map();
  const run = async (kind, request, hear, fail) => {
    busy.add(kind);
    const tell = await ask(request).then((answer) => () => hear(answer), (error) => () => fail(error));
    busy.delete(kind);
    const newer = next.get(kind);
    next.delete(kind);
    if (newer) run(kind, ...newer);
    else tell();
  };
  return (kind, ...question) => {
    if (busy.has(kind)) next.set(kind, question);
    else run(kind, ...question);
  };
}
