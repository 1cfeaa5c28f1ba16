/** Hosts of the explorer: a page, a notebook widget, and a Python server; each passes the model and receives changes. */

const SAVE_MS = 60; // a trait is set at most so often while the bandwidth is dragged

/**
 * A file: nobody listens, and nobody answers.
 * @returns {{kind: string, save: Function, onChange: Function, ask: Function|null}}
 */
export function pageHost() {
  return { kind: "page", save() {}, onChange: () => () => {}, ask: null };
}

const TRAITS = ["kernel", "bandwidth", "composition", "degree", "smoothing", "widths", "neighbors"];

/** What traits of a widget say, as a patch of the state. */
function patchOf(model) {
  const settings = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  return { settings, column: model.get("column"), sample: model.get("sample") ?? null, query: { numeric: model.get("query"), codes: model.get("levels") } };
}

/**
 * A notebook: traits follow the state and the state follows traits; questions go as messages to Python.
 * @param {object} model of anywidget
 */
export function widgetHost(model) {
  const waiting = new Map();
  const names = [...TRAITS, "column", "query", "levels", "sample"];
  let asked = 0;
  const hearAnswer = ({ id, answer, error }) => {
    const { resolve, reject } = waiting.get(id) || {};
    waiting.delete(id);
    if (error) reject?.(new Error(error));
    else resolve?.(answer);
  };
  model.on("msg:custom", hearAnswer);
  return {
    kind: "widget",
    load: () => patchOf(model),
    save({ settings, column, query, sample }) {
      for (const name of TRAITS) model.set(name, settings[name]);
      model.set("column", column);
      model.set("sample", sample);
      model.set("query", query.numeric);
      model.set("levels", query.codes);
      model.save_changes();
    },
    onChange(listener) {
      const hear = () => listener(patchOf(model));
      for (const name of names) model.on("change:" + name, hear);
      return () => {
        for (const name of names) model.off("change:" + name, hear);
        model.off("msg:custom", hearAnswer);
      };
    },
    ask: (request) =>
      new Promise((resolve, reject) => {
        waiting.set(++asked, { resolve, reject });
        model.send({ id: asked, request });
      }),
  };
}

/**
 * `kernpool explore`: an engine at the address that the page comes from.
 * @param {string} token that the server gave to the page
 */
export function serverHost(token) {
  return {
    ...pageHost(),
    kind: "server",
    async ask(request) {
      const headers = { "Content-Type": "application/json", "X-Kernpool-Token": token };
      const response = await fetch("ask", { method: "POST", headers, body: JSON.stringify(request) });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      return answer;
    },
  };
}

/**
 * Let host and state follow each other.
 * @returns {Function} that ends it
 */
export function follow(store, host) {
  let timer = 0;
  const save = () => {
    timer = 0;
    host.save(store.get());
  };
  if (host.load) store.set(host.load());
  const ends = [
    store.subscribe(() => (timer = timer || setTimeout(save, SAVE_MS)), ["settings", "column", "query", "sample"]),
    host.onChange((patch) => store.set(patch)),
  ];
  return () => {
    clearTimeout(timer);
    for (const end of ends) end();
  };
}
