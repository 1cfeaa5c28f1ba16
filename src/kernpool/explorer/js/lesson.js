/** A lesson in six steps: a sentence, one control that is lit, and a question to answer before the page shows the answer. */
import { canBeSure } from "./delayed_intervals.js";
import { html, put } from "./dom.js";
import { KERNELS } from "./kernels.js";

// `lit` selects the control; `right` is the number of the right answer; `start` and `show` are patches of the state, at
// the beginning of a step and once a question is answered. Texts are lesson.<name>.* of the words.
const STEPS = [
  { name: "mean", lit: "[data-control=query]", right: 1, show: ({ end }) => ({ query: { numeric: [end] } }) },
  { name: "small", lit: "[data-control=bandwidth-0]", right: 0, show: ({ small }) => width(small) },
  { name: "large", lit: "[data-control=bandwidth-0]", right: 2, show: ({ large }) => width(large) },
  { name: "best", lit: "[data-action=minimum]", right: 1, start: ({ wide }) => width(wide), press: true },
  { name: "kernel", lit: "[data-control=kernel]", right: 1, show: ({ usual }) => ({ settings: { kernel: "epanechnikov", ...width(alike("epanechnikov", usual)).settings } }) },
  { name: "band", lit: "[data-control=band]", right: 0, show: () => ({ band: true }) },
];
const ANSWERS = 3;
const KEPT = ["settings", "column", "query", "pins", "band", "sample", "rows", "picked", "draws"]; // what closing restores

/** Whether there is all that the lesson speaks of: one column of numbers, all rows in the page, errors and a band. */
export function canTeach(data, payload) {
  return data.numeric.length === 1 && !data.pairs[0] && !data.periods[0] && !data.categorical.length && data.n > 2 && canBeSure(data, payload) && (payload.samples || data.n >= (payload.rows ?? 0));
}

/** Open the lesson at its first step, or close it. */
export function switchLesson(context) {
  const { store } = context;
  const { lesson, ...now } = store.get();
  if (lesson) store.set({ ...lesson.before, lesson: null });
  else goTo(context, { step: 0, chosen: [], before: Object.fromEntries(KEPT.map((key) => [key, now[key]])) });
}

/** Begin a step with the settings that all of them begin with; one that has been answered shows its answer. */
function goTo({ store, data }, lesson) {
  const { start, show } = STEPS[lesson.step];
  const sizes = sizesOf(data());
  const plain = { column: 0, pins: [], band: false, query: { numeric: [sizes.middle] }, settings: { kernel: "gaussian", degree: 0, widths: "fixed", ...width(sizes.usual).settings } };
  const shown = lesson.chosen[lesson.step] === undefined ? start : show;
  store.set({ ...plain, lesson });
  if (shown) store.set(shown(sizes));
}

/** Bandwidths and places in the units of the column. */
function sizesOf({ n, low, high }) {
  const range = high[0] - low[0] || 1;
  return { usual: range / 15, wide: range / 5, small: range / Math.min(1000, Math.max(100, 3 * n)), large: 2 * range, middle: low[0] + 0.5 * range, end: low[0] + 0.9 * range };
}

function width(h) {
  return { settings: { bandwidth: [Number(h.toPrecision(3))] } };
}

/** The bandwidth at which a kernel has the standard deviation of the Gaussian at h. */
function alike(kernel, h) {
  const { profile, support } = KERNELS[kernel];
  const step = Math.min(support, 40) / 2000;
  let [mass, square] = [0, 0];
  for (let u = step / 2; u < 2000 * step; u += step) {
    mass += profile(u);
    square += u * u * profile(u);
  }
  return h / Math.sqrt(square / mass);
}

/** @returns {{update: (changed: Set<string>) => void, destroy: () => void}} */
export function makeLesson(root, context) {
  const { store, words, el } = context;
  const title = html("h2", { tabindex: -1, id: "kx-lesson-" + ++lessons });
  const text = html("p", {});
  const question = html("p", { class: "kp-question", id: "kx-question-" + lessons });
  const told = html("p", { class: "kp-told", role: "status", "data-part": "told" });
  const button = (name, onclick, label = words("lesson." + name)) => html("button", { type: "button", "data-control": "lesson-" + name, onclick }, label);
  const answers = Array.from({ length: ANSWERS }, (_, k) => button("answer-" + k, () => answer(k), ""));
  const move = (by) => () => {
    const { lesson } = store.get();
    goTo(context, { ...lesson, step: lesson.step + by });
    title.focus({ preventScroll: true });
  };
  const [back, next] = [button("back", move(-1)), button("next", move(1))];
  root.setAttribute("aria-labelledby", title.id);
  root.append(title, text, question, html("div", { class: "kp-answers", role: "group", "aria-labelledby": question.id }, ...answers), told,
    html("div", { class: "kp-buttons" }, back, next, button("close", () => close(), words("close"))));

  const lit = () => {
    const control = el.querySelector(STEPS[store.get().lesson.step].lit);
    return control.closest("label") || control;
  };
  const close = () => {
    switchLesson(context);
    el.querySelector("[data-control=lesson]").focus();
  };
  const answer = (k) => {
    const { lesson } = store.get();
    const { show, press } = STEPS[lesson.step];
    const chosen = lesson.chosen.slice();
    chosen[lesson.step] = k;
    store.set({ lesson: { ...lesson, chosen } });
    if (press) lit().click();
    else store.set(show(sizesOf(context.data())));
  };
  // Kernels are compared at one standard deviation: at one h they differ because their windows do.
  const follow = store.subscribe(({ lesson, settings }) => {
    if (!lesson || STEPS[lesson.step].name !== "kernel") return;
    const { kernel } = settings;
    if (kernel === lesson.kernel) return;
    store.set({ lesson: { ...lesson, kernel }, ...width(alike(kernel, sizesOf(context.data()).usual)) });
  }, ["settings"]);

  let shown = null;
  return {
    update(changed) {
      if (!changed.has("lesson")) return;
      const { lesson } = store.get();
      put(root, "hidden", !lesson);
      put(el, "data-lesson", lesson && STEPS[lesson.step].name);
      for (const one of el.querySelectorAll("[data-lit]")) put(one, "data-lit", null);
      const isNew = shown !== (lesson && lesson.step);
      shown = lesson && lesson.step;
      if (!lesson) return;
      const { name, right } = STEPS[lesson.step];
      const chosen = lesson.chosen[lesson.step];
      const say = (key) => words(`lesson.${name}.${key}`);
      put(title, "text", words("lesson.title", { step: lesson.step + 1, steps: STEPS.length }));
      put(text, "text", say("text"));
      put(question, "text", say("ask"));
      answers.forEach((one, k) => {
        put(one, "text", (chosen !== undefined && k === right ? "✓ " : "") + say(k));
        put(one, "aria-pressed", String(k === chosen));
      });
      put(told, "text", chosen === undefined ? words("lesson.guess") : words(chosen === right ? "lesson.right" : "lesson.wrong") + " " + say("why"));
      back.disabled = lesson.step === 0;
      next.disabled = chosen === undefined || lesson.step === STEPS.length - 1;
      put(lit(), "data-lit", true);
      if (isNew) lit().scrollIntoView({ block: "nearest" });
    },
    destroy() {
      follow();
      put(el, "data-lesson", null);
    },
  };
}

let lessons = Math.floor(1e9 * Math.random()); // a document may hold the module more than once
