/** Rows of generated data that the reader adds, drags and removes, or whose noise is drawn anew; the page alone has them. */
import { html, put } from "./dom.js";
import { within } from "./panel.js";

const FEWEST = 3; // rows: fewer leave nothing to leave out
const DRAWS = 8; // earlier draws whose curves stay as pale lines

/** Whether rows may be changed: those of a generator, on a page. A notebook's model would not know of it. */
export function canEdit({ payload }) {
  return Boolean(payload.samples);
}

/** The draw of a generator that is shown, changed or not. */
export function sampleOf({ store, payload }) {
  const { samples, columns } = payload;
  const start = samples.findIndex(({ x }) => JSON.stringify(x) === JSON.stringify(columns[0].values));
  return samples[store.get().sample ?? Math.max(0, start)];
}

/** Show other rows; `undo` goes back, of a whole drag at once. */
function setRows({ store, past }, patch, isNew = true) {
  const { rows, draws, picked } = store.get();
  if (isNew) past.push({ rows, draws, picked });
  store.set(patch);
}

function rowsOf({ data }) {
  return { x: Array.from(data().numeric[0]), y: Array.from(data().outputs[0]) };
}

export function addPoint(context, [x, y]) {
  const rows = rowsOf(context);
  const { low, high } = context.data();
  setRows(context, { rows: { x: [...rows.x, within(x, low[0], high[0])], y: [...rows.y, y] }, picked: rows.x.length });
}

/** Move the row that is picked; all places of one drag are undone together. */
export function movePoint(context, [x, y], isNew = true) {
  const { picked } = context.store.get();
  const rows = rowsOf(context);
  const { low, high } = context.data();
  if (picked === null) return;
  rows.x[picked] = within(x, low[0], high[0]);
  rows.y[picked] = y;
  setRows(context, { rows }, isNew);
}

export function removePoint(context) {
  const { picked } = context.store.get();
  const rows = rowsOf(context);
  if (picked === null || rows.x.length <= FEWEST) return;
  const others = (values) => values.filter((_, i) => i !== picked);
  setRows(context, { rows: { x: others(rows.x), y: others(rows.y) }, picked: null });
}

/** The true function and other noise at the places of the rows. The same draws, in the same order, on every computer. */
function drawNoise(context) {
  const rows = rowsOf(context);
  const { noise } = sampleOf(context);
  const { truth } = context.data();
  const normal = makeNormal(++context.drawn);
  const y = rows.x.map((x) => valueAt(truth, x) + noise * normal());
  setRows(context, { rows: { x: rows.x, y }, draws: [...context.store.get().draws, rows].slice(-DRAWS) });
}

/** Between the points of a line, and beyond them as at its ends. */
function valueAt({ x, y }, place) {
  const last = x.length - 2;
  const after = x.findIndex((one) => one > place);
  const i = within(after < 0 ? last : after - 1, 0, last);
  return y[i] + ((y[i + 1] - y[i]) * (place - x[i])) / (x[i + 1] - x[i]);
}

/** Standard normal numbers: mulberry32 and Box-Muller. */
function makeNormal(seed) {
  let state = seed * 0x9e3779b9;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Buttons for new noise, a new point and undoing, and a slider over the rows whose keys move and remove them. */
export function makePointTools(context, chart) {
  const { store, data, words } = context;
  const button = (name, onclick) => html("button", { type: "button", "data-control": name, onclick }, words("points." + name));
  const add = button("add", () => {
    const [value] = context.here().value;
    addPoint(context, [store.get().query.numeric[0], Number.isFinite(value) ? value : data().center[0]]);
    slider.focus();
  });
  const undo = button("undo", () => store.set(context.past.pop()));
  const pick = () => store.set({ picked: data().sorted[0][slider.value] });
  const shares = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
  const slider = html("input", {
    type: "range",
    min: 0,
    "data-control": "point",
    oninput: pick,
    onfocus: () => store.get().picked === null && pick(),
    onkeydown(event) {
      const share = shares[event.key];
      const { picked } = store.get();
      if (!share || !event.shiftKey || picked === null) return;
      event.preventDefault();
      const step = ({ domain }) => (domain[1] - domain[0]) / 100;
      const [low, high] = chart.y.domain;
      const { numeric, outputs } = data();
      movePoint(context, [numeric[0][picked] + share[0] * step(chart.x), within(outputs[0][picked] + share[1] * step(chart.y), low, high)]);
    },
  });
  const element = html("span", { class: "kp-edit" }, button("noise", () => drawNoise(context)), add, undo, html("label", {}, words("points.point") + " ", slider), html("span", { class: "kp-hint" }, words("points.hint")));
  return {
    element,
    focus: () => slider.focus({ preventScroll: true }),
    update() {
      const { picked } = store.get();
      undo.disabled = !context.past.length;
      put(slider, "max", data().n - 1);
      if (picked !== null) slider.value = data().sorted[0].indexOf(picked);
      const [x, y] = [data().numeric[0], data().outputs[0]].map((values) => (picked === null ? "–" : words.number(values[picked], 4)));
      put(slider, "aria-valuetext", `x ${x}, y ${y}`);
    },
  };
}
