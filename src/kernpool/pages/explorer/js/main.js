/** The explorer: mounts its panels in an element and passes changes on to them. */
import { makeClasses } from "./classes.js";
import { makeCompare } from "./compare.js";
import { makeControls } from "./controls.js";
import { readData, withSample } from "./data.js";
import { html, put } from "./dom.js";
import { follow, widgetHost } from "./hosts.js";
import { makeHeatMap } from "./heat_map.js";
import { makeIdle } from "./idle.js";
import { listenToKeys } from "./keyboard.js";
import { followHash, fromHash } from "./link.js";
import { makePathChart } from "./path_chart.js";
import { makePool } from "./pool.js";
import { makeRelevance } from "./relevance.js";
import { makeRemote } from "./remote.js";
import { makeResidualChart } from "./residual_chart.js";
import { makeScatter } from "./scatter.js";
import { makeSlices } from "./slices.js";
import { makeStore } from "./store.js";
import { STYLE } from "./style_text.js";
import { makeToolbar } from "./toolbar.js";
import { makeTraining } from "./training.js";
import { makeWeights } from "./weights.js";
import { chooseLanguage, makeWords } from "./words.js";

// Panels in the order in which they are read. `make(root, context)` returns {update(changed), destroy()}; `frame` panels
// are drawn in the frame of the change, the others in idle slices after it; `when(data, payload)` says whether there
// is something to show; `place` is "top", "chart", "side" or "more".
const PANELS = [
  { name: "toolbar", make: makeToolbar, frame: true, place: "top" },
  { name: "scatter", make: makeScatter, frame: true, place: "chart" },
  { name: "controls", make: makeControls, frame: true, place: "side" },
  { name: "slices", make: makeSlices, frame: true, place: "side", when: hasMoreColumns },
  { name: "weights", make: makeWeights, frame: true, place: "side" },
  { name: "compare", make: makeCompare, place: "chart" },
  { name: "classes", make: makeClasses, when: (data) => data.classes },
  { name: "heat", make: makeHeatMap },
  { name: "path", make: makePathChart, when: isExact },
  { name: "residuals", make: makeResidualChart, when: (data, payload) => !data.classes && isExact(data, payload) },
  { name: "training", make: makeTraining, when: (data) => !data.classes && !data.weight && !hasMoreColumns(data) && data.n <= TRAINED },
  { name: "relevance", make: makeRelevance, when: hasMoreColumns },
];

function hasMoreColumns(data) {
  return data.numeric.length + data.categorical.length > 1;
}

/** Whether all pairs of rows are visited. */
function isExact(data, payload) {
  return Math.max(data.n, payload.rows) <= payload.limits.exact;
}

const TRAINED = 2000; // rows whose pairs an epoch visits within a frame or two

const EVERYTHING = ["settings", "column", "query", "answered", "pins", "sample", "language", "theme", "panels", "training"];

/**
 * @param {HTMLElement} el
 * @param {object} payload as payload.py makes it
 * @param {object} host see hosts.js; null for a page that nobody listens to
 * @returns {{destroy: () => void, store: object}}
 */
export function mount(el, payload, host = null) {
  const base = readData(payload);
  const isPage = !host || host.kind !== "widget";
  const read = (hash) => fromHash(hash, payload, base);
  const store = makeStore({ ...startState(payload, base), ...(isPage ? read(location.hash) : {}) });
  const idle = makeIdle();
  const root = html("div", { class: "kp" });
  const spoken = html("p", { class: "kp-spoken", "aria-live": "polite" });
  el.append(html("style", {}, STYLE), root, spoken);

  const data = remember(
    () => [store.get().sample],
    () => (payload.samples && store.get().sample !== null ? withSample(base, payload.samples[store.get().sample]) : base),
  );
  const pool = remember(() => [data(), store.get().settings], (...parts) => makePool(...parts));
  const remote = makeRemote({ host, payload, data, store });
  const local = remember(() => [pool(), store.get().query], (now, query) => now.at(query));
  const here = remote ? () => remote.here(local()) : local;
  const context = { el: root, payload, host, store, data, pool, here, remote, idle, say: makeSpeaker(spoken), words: null };

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let panels = [];
  const build = () => {
    for (const panel of panels) panel.destroy();
    const state = store.get();
    context.words = makeWords(state.language);
    const focused = root.contains(document.activeElement) && document.activeElement.dataset.control;
    put(root, "lang", state.language === "zh" ? "zh-Hans" : "en");
    const places = Object.fromEntries(["top", "chart", "side", "more"].map((name) => [name, html("div", { class: "kp-place-" + name })]));
    const { top, chart, side, more } = places;
    root.replaceChildren(top, html("div", { class: "kp-body" }, chart, side), more);
    panels = PANELS.filter(({ when }) => !when || when(data(), payload)).map(({ name, make, frame, place = "more" }) => {
      const section = html("section", { class: "kp-panel", "data-panel": name });
      places[place].append(section);
      return { frame, waiting: null, ...make(section, context) };
    });
    refresh(new Set(EVERYTHING));
    if (focused) root.querySelector(`[data-control="${focused}"]`)?.focus();
  };

  const refresh = (changed) => {
    const { theme } = store.get();
    put(root, "data-theme", theme === "auto" ? (dark.matches ? "dark" : "light") : theme);
    for (const panel of panels.filter((one) => one.frame)) panel.update(changed);
    for (const panel of panels.filter((one) => !one.frame)) {
      const all = panel.waiting ? panel.waiting.changed : new Set();
      for (const key of changed) all.add(key);
      if (panel.waiting) continue;
      panel.waiting = { changed: all };
      idle(() => {
        panel.waiting = null;
        panel.update(all);
      });
    }
  };

  // The first change of a frame is drawn at once, those after it together in the next frame: pointers tell of one
  // movement a frame, and waiting for the frame would cost up to 16 ms.
  let frame = 0;
  let changes = new Set();
  const note = (state, changed) => {
    for (const key of changed) changes.add(key);
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (changes.size) draw();
    });
    queueMicrotask(draw);
  };
  const onDark = () => note(null, ["theme"]);
  store.subscribe(note);
  dark.addEventListener("change", onDark);
  const draw = () => {
    const changed = changes;
    changes = new Set();
    if (changed.has("language")) build();
    else refresh(changed);
  };
  build();
  const ends = [listenToKeys(context), isPage ? followHash(store, read) : null, host ? follow(store, host) : null];

  return {
    store,
    destroy() {
      cancelAnimationFrame(frame);
      dark.removeEventListener("change", onDark);
      idle.clear();
      for (const panel of panels) panel.destroy();
      for (const end of ends) if (end) end();
      el.replaceChildren();
    },
  };
}

/** What is shown first. */
function startState(payload, data) {
  return {
    settings: payload.settings,
    column: payload.column || 0,
    query: payload.query || middleQuery(data),
    answered: "", // the question that an engine has answered last
    pins: [],
    sample: null,
    language: chooseLanguage(payload.language),
    theme: "auto",
    panels: {},
    training: null,
  };
}

/** The query in the middle: medians, and the most frequent levels. */
function middleQuery(data) {
  const numeric = data.numeric.map((column) => Array.from(column).sort((a, b) => a - b)[data.n >> 1]);
  const codes = data.categorical.map(({ codes, levels }) => {
    const counts = levels.map(() => 0);
    for (const code of codes) counts[code]++;
    return counts.indexOf(Math.max(...counts));
  });
  return { numeric, codes };
}

/** Remember the last answer while the parts it is made from stay the same objects. */
function remember(parts, make) {
  let last = null;
  let answer;
  return () => {
    const now = parts();
    if (!last || now.some((part, i) => part !== last[i])) [last, answer] = [now, make(...now)];
    return answer;
  };
}

/** Say the newest text to a screen reader once nothing has changed for a while. */
function makeSpeaker(element) {
  let timer = 0;
  return (text) => {
    clearTimeout(timer);
    timer = setTimeout(() => put(element, "text", text), 700);
  };
}

/** The entry of anywidget. */
function render({ model, el }) {
  const { destroy } = mount(el, model.get("payload"), widgetHost(model));
  return destroy;
}

export default { render };
