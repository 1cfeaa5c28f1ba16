/** Two and more columns: which one is the axis, where the others are fixed, and the bandwidth of each. */
import { html, put } from "./dom.js";
import { titled, within } from "./panel.js";

const FINE = 400; // steps of a slider

export function makeSlices(root, context) {
  const { store, words } = context;
  const data = context.data();
  titled(root, words("slices.title"), words("slices.note"));
  const controls = [];
  const rows = [];

  /** A labelled control in a cell; `show(state)` brings it up to date. */
  const cell = (label, input, show, output = null) => {
    put(input, "aria-label", label);
    controls.push(show);
    return html("td", {}, input, output);
  };
  const slider = (label, options, toNumber, fromNumber, read, write) => {
    const output = html("output", {});
    const input = html("input", { type: "range", ...options, oninput: () => write(toNumber(Number(input.value))) });
    return cell(label, input, (state) => {
      const value = read(state);
      const at = fromNumber(value);
      // Columns that do not matter have bandwidths far beyond the range.
      if (at > Number(input.max)) put(input, "max", at);
      if (at < Number(input.min)) put(input, "min", at);
      if (Number(input.value) !== at) input.value = at;
      put(input, "aria-valuetext", words.number(value));
      put(output, "text", words.number(value));
    }, output);
  };
  const patched = (list, at, value) => list.map((old, i) => (i === at ? value : old));
  const same = (value) => value;

  data.names.forEach((name, a) => {
    const [low, high] = [data.low[a], data.high[a]];
    const range = high - low || 1;
    const axis = html("input", { type: "radio", name: "kx-axis-" + group, onchange: () => store.set({ column: a }) });
    const place = slider(words("slices.value", { name }), { min: low, max: high, step: range / FINE }, same, same,
      ({ query }) => query.numeric[a], (value) => store.set({ query: { numeric: patched(store.get().query.numeric, a, within(value, low, high)) } }));
    const width = slider(words("slices.bandwidth", { name }), { min: Math.log10(range / 500), max: Math.log10(range * 5), step: 0.01 }, (at) => 10 ** at, Math.log10,
      ({ settings }) => settings.bandwidth[a], (h) => store.set({ settings: { bandwidth: patched(store.get().settings.bandwidth, a, h) } }));
    const chosen = cell(words("slices.axis", { name }), axis, ({ column }) => (axis.checked = column === a));
    rows.push(html("tr", {}, html("th", { scope: "row" }, name), chosen, place, width));
  });
  data.categorical.forEach(({ name, levels, largest }, b) => {
    const choice = html("select", { onchange: () => store.set({ query: { codes: patched(store.get().query.codes, b, Number(choice.value)) } }) },
      ...levels.map((level, code) => html("option", { value: code }, level)));
    const level = cell(words("slices.value", { name }), choice, ({ query }) => (choice.value = query.codes[b]));
    const width = slider(words("slices.smoothing", { name }), { min: 0, max: largest, step: (largest || 1) / FINE }, same, same,
      ({ settings }) => settings.smoothing[b], (lambda) => store.set({ settings: { smoothing: patched(store.get().settings.smoothing, b, lambda) } }));
    rows.push(html("tr", {}, html("th", { scope: "row" }, name), html("td", {}), level, width));
  });
  group += 1;
  const heads = ["column", "axis.head", "value.head", "width.head"].map((key) => html("th", { scope: "col" }, words("slices." + key)));
  root.append(html("table", { class: "kx-table" }, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)));
  return {
    update() {
      for (const show of controls) show(store.get());
    },
    destroy() {},
  };
}

let group = 0; // of radio buttons, where a page has several explorers
