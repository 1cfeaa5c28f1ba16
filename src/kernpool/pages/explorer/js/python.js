/** The view as Python: the same rows, settings and query, by the public names of the package. */

/** @param {object} context @returns {string} lines of Python that run as they are once X and y are there */
export function toPython({ store, data, payload }) {
  const { settings, query, sample, column } = store.get();
  const estimator = settings.degree === 1 ? "LocalLinearRegressor" : data().classes ? "NadarayaWatsonClassifier" : "NadarayaWatsonRegressor";
  const load = sample === null ? payload.python.load : loadSample(payload.samples[sample]);
  const framed = /\bpd\.|pandas|polars|DataFrame|read_/.test(load);
  const cells = `[${row(query, data(), payload).join(", ")}]`;
  const along = column ? `, column=${quote(data().names[column])}` : "";
  const parts = [...options(settings, data(), payload), ...(estimator === payload.python.estimator ? extras(settings, data()) : [])];
  return [
    load,
    "",
    `from kernpool import ${estimator}, explore`,
    "",
    `model = ${estimator}(`,
    ...parts.map((part) => `    ${part},`),
    `).fit(X, y${data().weight ? ", sample_weight=sample_weight" : ""})`,
    `query = [${cells}]`,
    ...(framed ? ["query = type(X)(query, columns=X.columns)"] : []),
    data().classes ? "model.predict_proba(query)" : "model.predict(query)",
    "model.attention_weights(query)",
    "model.effective_sample_size(query)",
    `explore(model, query=${cells}${along})`,
    "",
  ].join("\n");
}

function loadSample({ generator, seed }) {
  return `from kernpool.datasets import ${generator}\n\nsample = ${generator}(random_state=${seed})\nX, y = sample.x_train[:, None], sample.y_train`;
}

function options(settings, data, payload) {
  const list = (numbers) => `[${numbers.join(", ")}]`;
  const kinds = ["unordered", "ordered"].flatMap((kind) => {
    const places = payload.columns.flatMap((column, place) => (column.kind === kind ? [place] : []));
    return places.length ? [`${kind}=${list(places)}`, `${kind}_kernel=${quote(payload.columns[places[0]].kernel)}`] : [];
  });
  return [
    `kernel=${quote(settings.kernel)}`,
    `bandwidth=${list(settings.bandwidth)}`,
    ...(data.numeric.length > 1 ? [`composition=${quote(settings.composition)}`] : []),
    ...kinds,
    ...(data.categorical.length ? [`smoothing=${list(settings.smoothing)}`] : []),
  ];
}

/** What only the model's kind of estimator knows. */
function extras(settings, data) {
  const found = [];
  if (settings.empty && settings.empty !== (data.classes ? "mean" : "nan")) found.push(`empty=${quote(settings.empty)}`);
  if (data.classes && settings.priorShare !== undefined) found.push(`prior_share=${settings.priorShare}`);
  if (settings.degree === 1 && settings.ridge) found.push(`ridge=${settings.ridge}`);
  return found;
}

/** The query's cells in the order of the columns. */
function row(query, data, payload) {
  const cells = payload.columns.map(() => "None");
  data.placeOf.forEach((place, a) => (cells[place] = String(query.numeric[a])));
  data.categorical.forEach(({ place, levels }, b) => {
    const numbers = levels.every((level) => level.trim() !== "" && Number.isFinite(Number(level)));
    if (query.codes[b] >= 0) cells[place] = numbers ? levels[query.codes[b]] : quote(levels[query.codes[b]]);
  });
  return cells;
}

function quote(text) {
  return JSON.stringify(text);
}
