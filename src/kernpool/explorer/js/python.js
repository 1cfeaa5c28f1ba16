/** The view as Python: the same rows, settings and query, by the public names of the package. */
import { pythonCell } from "./dates.js";
import { isByColumn } from "./similarity.js";
import { isNearest, neighborsOf } from "./widths.js";

/** @param {object} context @returns {string} lines of Python that run as they are once X and y are there */
export function toPython({ store, data, payload }) {
  const { settings, query, sample, rows: changed } = store.get();
  const rows = data();
  const estimator = settings.degree === 1 ? "LocalLinearRegressor" : rows.classes ? "NadarayaWatsonClassifier" : "NadarayaWatsonRegressor";
  const load = sample === null ? payload.python.load : loadSample(payload.samples[sample]);
  const cells = `[${row(query, rows, payload).join(", ")}]`;
  const given = [...(rows.weight ? ["sample_weight"] : []), ...(rows.group ? ["groups"] : [])];
  const said = { sample_weight: "the weights of the rows of X", groups: "the group of every row of X" };
  const isTruthOutside = rows.truth && !payload.samples;
  return [
    load,
    ...(changed ? ["import numpy as np", "", `X = np.array([${changed.x.join(", ")}])[:, None]`, `y = np.array([${changed.y.join(", ")}])`] : []),
    ...given.map((name) => `# ${name}: ${said[name]}`),
    ...(isTruthOutside ? ["# The true function: give it to explore as truth="] : []),
    "",
    ...(rows.times.some(Boolean) ? ["from datetime import datetime, timedelta", ""] : []),
    `from kernpool import ${estimator}, ${isNearest(settings) ? "Nearest, " : ""}explore`,
    "",
    `model = ${estimator}(`,
    ...options(settings, query, rows, payload).map((part) => `    ${part},`),
    `).fit(${["X", "y", ...given.map((name) => `${name}=${name}`)].join(", ")})`,
    `query = [${cells}]`,
    ...frame(load),
    rows.classes ? "model.predict_proba(query)" : "model.predict(query)",
    ...(settings.degree ? ["# The page shows the kernel's weights; these are the shares of y in the local plane"] : []),
    "model.attention_weights(query)",
    "model.get_prediction(query).effective_sample_size",
    `explore(${["model", `query=${cells}`, ...view(store.get(), rows, payload)].join(", ")})`,
    "",
  ].join("\n");
}

function loadSample({ generator, seed }) {
  return `from kernpool.datasets import ${generator}\n\nsample = ${generator}(random_state=${seed})\nX, y = sample.x_train[:, None], sample.y_train`;
}

/** The query in the form of X, where that is a table. */
function frame(load) {
  if (/\bpl\.|polars/.test(load)) return ['query = type(X)(query, schema=X.columns, orient="row")'];
  return /\bpd\.|pandas|DataFrame|read_/.test(load) ? ["query = type(X)(query, columns=X.columns)"] : [];
}

/** What else `explore` is told. */
function view({ column, sample, language }, data, payload) {
  return [
    ...(column ? [`column=${quote(data.names[column])}`] : []),
    `target=${quote(data.targetName)}`,
    `title=${quote(sample === null ? payload.title : payload.samples[sample].generator)}`,
    ...(payload.samples ? ["truth=(sample.x_test, sample.y_truth)"] : []),
    ...(payload.language ? [`language=${quote(language)}`] : []),
  ];
}

function options(settings, query, data, payload) {
  const list = (numbers) => `[${numbers.join(", ")}]`;
  const kinds = ["unordered", "ordered"].flatMap((kind) => {
    const places = payload.columns.flatMap((column, place) => (column.kind === kind ? [place] : []));
    return places.length ? [`${kind}=${list(places)}`] : [];
  });
  const { unseen } = payload.python;
  if (payload.columns.some(({ kernel }) => kernel?.startsWith("li_racine"))) kinds.push('categorical_kernel="li_racine"');
  const isUnlike = unseen === "unlike" || query.codes.some((code) => code < 0);
  return [
    `kernel=${quote((isByColumn(data, settings) ? "product " : "") + settings.kernel)}`,
    ...(isNearest(settings) ? [`window=Nearest(${neighborsOf(data, settings)})`] : [`bandwidth=${list(settings.bandwidth)}`]),
    ...(data.comesRound ? [`periodic={${data.periods.flatMap((period, a) => (period ? [`${data.placeOf[a]}: ${period}`] : [])).join(", ")}}`] : []),
    ...kinds,
    ...(data.categorical.length ? [`smoothing=${list(settings.smoothing)}`] : []),
    ...(isUnlike ? ['unseen="unlike"'] : []),
    ...(settings.empty && settings.empty !== (data.classes ? "mean" : "nan") ? [`empty=${quote(settings.empty)}`] : []),
    ...(data.classes && settings.priorShare !== undefined ? [`prior_share=${settings.priorShare}`] : []),
    ...(settings.degree === 1 ? planes(settings, data) : []),
  ];
}

/** What only local linear models know. Without a ridge above zero they read columns of two levels as levels. */
function planes({ ridge }, { pairs }) {
  const penalty = ridge || !pairs.some(Boolean) ? ridge : 1e-300;
  return (penalty ?? null) === null ? [] : [`ridge=${penalty}`];
}

/** The query's cells in the order of the columns; levels as Python writes them. */
function row(query, data, payload) {
  const cells = payload.columns.map(() => "None");
  const level = (place, code) => payload.columns[place].literals?.[code] ?? quote(payload.columns[place].levels[code] ?? UNSEEN);
  data.placeOf.forEach((place, a) => (cells[place] = data.pairs[a] ? level(place, query.numeric[a]) : pythonCell(data.times[a], query.numeric[a])));
  data.categorical.forEach(({ place }, b) => (cells[place] = level(place, query.codes[b])));
  return cells;
}

const UNSEEN = "a level that no row has";

function quote(text) {
  return JSON.stringify(text);
}
