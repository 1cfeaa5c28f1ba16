/** Bandwidths or neighbors, smoothings, kernel, degree, widths and composition, all of them native inputs with labels. */
import { html, put } from "./dom.js";
import { bandwidthRange, setBandwidth, setNeighbors, setWidths } from "./actions.js";
import { columnSpread } from "./relevance.js";
import { canBeNearest, isNearest, neighborRange, neighborsOf } from "./widths.js";

const SLIDER_STEPS = 400; // of a logarithmic slider
const NO_EFFECT = 1e-3; // relevance below which all weights of that column are the same for a reader

/** @returns {{update: () => void, destroy: () => void}} */
export function makeControls(root, context) {
  const { store, data, payload, words } = context;
  const setting = (name, read = String) => (event) => store.set({ settings: { [name]: read(event.target.value) } });
  const sliders = data().numeric.map((_, a) => makeSlider(context, a));
  const smoothings = data().categorical.map((column, b) => makeSmoothing(context, column, b));
  const kernel = choice("kernel", payload.kernels.map((name) => [name, words("kernel." + name)]), words, setting("kernel"));
  // Columns of two levels are numbers in local planes alone; in local means they are levels, with a smoothing.
  const degree = data().classes || data().pairs.some(Boolean) ? null : choice("degree", [0, 1].map((k) => [k, words("degree." + k)]), words, setting("degree", Number));
  const many = data().numeric.length > 1 && !data().comesRound; // a product would depend on where circles begin
  const composition = many ? choice("composition", ["radial", "product"].map((name) => [name, words(name)]), words, setting("composition")) : null;
  const canFollow = canBeNearest(data(), payload);
  const widths = canFollow ? choice("widths", ["fixed", "nearest"].map((name) => [name, words("widths." + name)]), words, (event) => setWidths(context, event.target.value)) : null;
  const neighbors = canFollow ? makeNeighbors(context) : null;
  const back = html("button", { type: "button", "data-control": "model", onclick: () => store.set({ settings: payload.fitted }) }, words("model"));
  const selects = [kernel, degree, widths, composition].filter(Boolean);
  root.append(
    html("h2", {}, words("settings")),
    ...[...sliders, neighbors, ...smoothings].filter(Boolean).map((one) => one.element),
    html("div", { class: "kp-selects" }, ...selects.map((one) => one.element), payload.fitted ? back : null),
    html("p", { class: "kp-hint" }, words("keys")),
  );
  return {
    update() {
      const { settings } = store.get();
      sliders.forEach((one, a) => one.update(settings.bandwidth[a], settings.degree));
      smoothings.forEach((one, b) => one.update(settings.smoothing[b]));
      if (neighbors) {
        put(sliders[0].element, "hidden", isNearest(settings));
        put(neighbors.element, "hidden", !isNearest(settings));
        neighbors.update(settings);
      }
      for (const one of selects) one.input.value = settings[one.name];
      back.disabled = JSON.stringify(settings) === JSON.stringify({ ...settings, ...payload.fitted });
    },
    destroy() {},
  };
}

function makeSlider(context, column) {
  const { data, words } = context;
  const [low, high] = bandwidthRange(context, column).map(Math.log);
  const name = data().names[column];
  const spread = columnSpread(data(), column);
  const text = data().numeric.length > 1 ? words("bandwidth.of", { name }) : words("bandwidth");
  const input = html("input", { type: "range", min: 0, max: SLIDER_STEPS, "data-control": "bandwidth-" + column });
  input.addEventListener("input", () => setBandwidth(context, column, Math.exp(low + ((high - low) * input.value) / SLIDER_STEPS)));
  const shown = html("output", {});
  return {
    element: html("label", { class: "kp-slider" }, html("span", {}, text), input, shown),
    update(h, degree) {
      input.value = Math.round((SLIDER_STEPS * (Math.log(h) - low)) / (high - low));
      const said = spread / h < NO_EFFECT ? words(degree ? "infinite.line" : "infinite") : words.number(h);
      put(input, "aria-valuetext", said);
      put(shown, "text", said);
    },
  };
}

function makeNeighbors(context) {
  const { data, words } = context;
  const input = html("input", { type: "range", step: 1, "data-control": "neighbors", oninput: () => setNeighbors(context, Number(input.value)) });
  const shown = html("output", {});
  return {
    element: html("label", { class: "kp-slider" }, html("span", {}, words("neighbors")), input, shown),
    update(settings) {
      [input.min, input.max] = neighborRange(data(), settings);
      const k = neighborsOf(data(), settings);
      if (!Number.isFinite(k)) return;
      input.value = k;
      put(shown, "text", String(k));
    },
  };
}

function makeSmoothing({ store, words }, column, b) {
  const input = html("input", { type: "range", min: 0, max: SLIDER_STEPS, "data-control": "smoothing-" + b });
  input.addEventListener("input", () => {
    const smoothing = store.get().settings.smoothing.slice();
    smoothing[b] = Number(((column.largest * input.value) / SLIDER_STEPS).toPrecision(4));
    store.set({ settings: { smoothing } });
  });
  const shown = html("output", {});
  return {
    element: html("label", { class: "kp-slider" }, html("span", {}, words("smoothing.of", { name: column.name })), input, shown),
    update(value) {
      input.value = Math.round((SLIDER_STEPS * value) / (column.largest || 1));
      put(input, "aria-valuetext", words.number(value));
      put(shown, "text", words.number(value));
    },
  };
}

/** A labelled select. */
function choice(name, options, words, onchange) {
  const input = html("select", { "data-control": name, onchange }, ...options.map(([value, text]) => html("option", { value }, text)));
  return { name, input, element: html("label", { class: "kp-select" }, html("span", {}, words(name)), input) };
}
