/** The explorer: mounts its panels in an element and passes changes on to them. */
import { makeQuickPool } from "./binned.js";
import { makeClasses } from "./classes.js";
import { makeCompare } from "./compare.js";
import { makeControls } from "./controls.js";
import { axesOf, readData, withRows, withSample } from "./data.js";
import { html, put } from "./dom.js";
import { makeHeatMap } from "./heat_map.js";
import { makeIdle } from "./idle.js";
import { listenToKeys } from "./keyboard.js";
import { canTeach, makeLesson } from "./lesson.js";
import { followHash, fromHash } from "./link.js";
import { makePathChart } from "./path_chart.js";
import { makeRelevance } from "./relevance.js";
import { makeResidualChart } from "./residual_chart.js";
import { makeScatter } from "./scatter.js";
import { makeSlices } from "./axis_panel.js";
import { makeSlowMotion } from "./slow_motion.js";
import { makeStore } from "./store.js";
import { addKernels } from "./tabulated_kernels.js";
import { makeToolbar } from "./toolbar.js";
import { makeTraining } from "./training.js";
import { makeWeights } from "./weights.js";
import { chooseLanguage, makeWords } from "./words.js";
import PANELS_STYLE from "./panels.css";
import STYLE from "./style.css";

// Panels in the order in which they are read. `make(root, context)` returns {update(changed), destroy()}; `frame` panels
// are drawn in the frame of the change, the others in idle slices after it; `when(data, payload)` says whether there
// is something to show; `place` is "top", "chart", "side", "under" the chart, or "more".
const PANELS = [
  { name: "toolbar", make: makeToolbar, frame: true, place: "top" },
  { name: "scatter", make: makeScatter, frame: true, place: "chart" },
  { name: "lesson", make: makeLesson, frame: true, place: "side", when: canTeach },
  { name: "controls", make: makeControls, frame: true, place: "side" },
  { name: "weights", make: makeWeights, frame: true, place: "side" },
  { name: "slow", make: makeSlowMotion, frame: true, place: "side", when: canTeach },
  { name: "slices", make: makeSlices, frame: true, place: "under", when: hasMoreColumns },
  { name: "compare", make: makeCompare, place: "under" },
  { name: "path", make: makePathChart, place: "under", when: (data, payload) => !hasMoreColumns(data) && isExact(data, payload) },
  { name: "classes", make: makeClasses, when: (data) => data.classes },
  { name: "heat", make: makeHeatMap },
  { name: "path", make: makePathChart, when: (data, payload) => hasMoreColumns(data) && isExact(data, payload) },
  { name: "residuals", make: makeResidualChart, when: (data, payload) => !data.classes && isExact(data, payload) },
  { name: "training", make: makeTraining, frame: true, when: canTrain },
  { name: "relevance", make: makeRelevance, when: hasMoreColumns },
];

/** Whether there is one column of rows that count alike, each left out alone: what is taught, and few enough. */
function canTrain(data) {
  const isPlain = !data.classes && !data.weight && !data.group && !data.periods[0] && !hasMoreColumns(data);
  return isPlain && data.n > 1 && data.n <= TRAINED;
}

function hasMoreColumns(data) {
  return data.numeric.length + data.categorical.length > 1;
}

/** Whether there are pairs of rows, and all of them are visited. */
function isExact(data, payload) {
  return data.n > 1 && data.n <= payload.limits.exact;
}

const TRAINED = 2000; // rows whose pairs an epoch visits within a frame or two

const EVERYTHING = ["settings", "column", "query", "pins", "sample", "language", "theme", "panels", "training", "band", "lesson", "picked", "draws"];

/**
 * @param {HTMLElement} el
 * @param {object} payload as explorer/explorer_model.py makes it
 * @returns {{destroy: () => void, store: object}}
 */
export function mount(el, payload) {
  addKernels(payload.tables);
  const base = readData(payload);
  const read = (hash) => fromHash(hash, payload, base);
  const store = makeStore({ ...startState(payload, base), ...read(location.hash) });
  const idle = makeIdle();
  const root = html("div", { class: "kp" });
  const spoken = html("p", { class: "kp-spoken", "aria-live": "polite" });
  el.append(html("style", {}, PANELS_STYLE + STYLE), root, spoken);

  const sample = remember(
    () => [store.get().sample],
    (number) => (payload.samples && number !== null ? withSample(base, payload.samples[number]) : base),
  );
  const data = remember(() => [sample(), store.get().rows], (start, rows) => (rows ? withRows(start, rows) : start));
  const pool = remember(() => [data(), store.get().settings], (rows, settings) => makeQuickPool(rows, settings, payload.limits.exact));
  const here = remember(() => [pool(), store.get().query], (now, query) => now.at(query));
  const context = { el: root, payload, store, data, pool, here, idle, say: makeSpeaker(spoken), words: null, past: [], drawn: 0 };

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let panels = [];
  // The live region lies beside the root, and a page of its own is of one language.
  const spokenIn = [root, spoken, document.documentElement];
  const build = () => {
    for (const panel of panels) panel.destroy();
    const state = store.get();
    context.words = makeWords(state.language);
    const focused = root.contains(document.activeElement) && document.activeElement.dataset.control;
    for (const element of spokenIn) put(element, "lang", state.language === "zh" ? "zh-Hans" : "en");
    const places = Object.fromEntries(["top", "chart", "side", "under", "more"].map((name) => [name, html("div", { class: "kp-place-" + name })]));
    const { top, chart, side, under, more } = places;
    root.replaceChildren(top, html("div", { class: "kp-body" }, chart, side, under), more);
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
    if (changes.has("rows")) changes.add("sample"); // panels ask whether the rows are others
    if (frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (changes.size) draw();
    });
    queueMicrotask(draw);
  };
  const onDark = () => note(null, ["theme"]);
  store.subscribe(note);
  store.subscribe(() => store.set({ training: null }), ["sample", "rows"]); // it was of other rows
  store.subscribe(() => {
    context.past = [];
    store.set({ rows: null, picked: null, draws: [] });
  }, ["sample"]);
  dark.addEventListener("change", onDark);
  const draw = () => {
    const changed = changes;
    changes = new Set();
    if (changed.has("language")) build();
    else refresh(changed);
  };
  build();
  const ends = [listenToKeys(context), followHash(store, read)];

  return {
    store,
    destroy() {
      cancelAnimationFrame(frame);
      dark.removeEventListener("change", onDark);
      idle.clear();
      for (const panel of panels) panel.destroy();
      for (const end of ends) end();
      el.replaceChildren();
    },
  };
}

/** What is shown first. */
function startState(payload, data) {
  return {
    settings: payload.settings,
    column: axesOf(data).includes(payload.column) ? payload.column : axesOf(data)[0],
    query: payload.query || middleQuery(data),
    pins: [],
    sample: null,
    language: chooseLanguage(payload.language),
    theme: "auto",
    panels: {},
    training: null,
    band: true, // whether intervals and the band are drawn
    lesson: null,
    rows: null, // {x, y} in place of those of the sample, see points.js
    picked: null, // number of a row
    draws: [], // rows before new noise was drawn
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
