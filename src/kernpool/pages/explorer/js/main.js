/** The explorer: mounts its panels in an element and passes changes on to them. */
import { STYLE } from "./style_text.js";
import { readData, withSample } from "./data.js";
import { html, put } from "./dom.js";
import { makeIdle } from "./idle.js";
import { makePool } from "./pool.js";
import { makeStore } from "./store.js";
import { chooseLanguage, makeWords } from "./words.js";

// Panels in the order in which they are read. `make(root, context)` returns {update(changed), destroy()}; `frame` panels
// are drawn in the frame of the change, the others in idle slices after it; `when(data, payload)` says whether there
// is something to show; `place` is "chart", "side" or "more".
const PANELS = [];

const EVERYTHING = ["settings", "column", "query", "pins", "sample", "language", "theme", "panels", "training"];

/**
 * @param {HTMLElement} el
 * @param {object} payload as payload.py makes it
 * @param {object} host see hosts.js; null for a page that nobody listens to
 * @returns {{destroy: () => void, store: object}}
 */
export function mount(el, payload, host = null) {
  const base = readData(payload);
  const store = makeStore(startState(payload, base));
  const idle = makeIdle();
  const root = html("div", { class: "kp" });
  el.append(html("style", {}, STYLE), root);

  const data = remember(
    () => [store.get().sample],
    () => (payload.samples && store.get().sample !== null ? withSample(base, payload.samples[store.get().sample]) : base),
  );
  const pool = remember(() => [data(), store.get().settings], (...parts) => makePool(...parts));
  const context = { el: root, payload, host, store, data, pool, idle, words: null };

  let panels = [];
  const build = () => {
    for (const panel of panels) panel.destroy();
    const state = store.get();
    context.words = makeWords(state.language);
    put(root, "lang", state.language === "zh" ? "zh-Hans" : "en");
    const places = Object.fromEntries(["chart", "side", "more"].map((name) => [name, html("div", { class: "kp-" + name })]));
    root.replaceChildren(...Object.values(places));
    panels = PANELS.filter(({ when }) => !when || when(data(), payload)).map(({ name, make, frame, place = "more" }) => {
      const section = html("section", { class: "kp-panel", "data-panel": name });
      places[place].append(section);
      return { frame, waiting: null, ...make(section, context) };
    });
    refresh(new Set(EVERYTHING));
  };

  const refresh = (changed) => {
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

  let frame = 0;
  let changes = new Set();
  store.subscribe((state, changed) => {
    for (const key of changed) changes.add(key);
    frame = frame || requestAnimationFrame(draw);
  });
  const draw = () => {
    const changed = changes;
    frame = 0;
    changes = new Set();
    if (changed.has("language")) build();
    else refresh(changed);
  };
  build();

  return {
    store,
    destroy() {
      cancelAnimationFrame(frame);
      idle.clear();
      for (const panel of panels) panel.destroy();
      el.replaceChildren();
    },
  };
}

/** What is shown first. */
function startState(payload, data) {
  return {
    settings: payload.settings,
    column: payload.column || 0,
    query: payload.query || middle(data),
    pins: [],
    sample: null,
    language: chooseLanguage(payload.language),
    theme: "auto",
    panels: {},
    training: null,
  };
}

/** The query in the middle: medians, and the most frequent levels. */
function middle(data) {
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
