/** Two and more columns: which one is the axis, and where the others are fixed. Bandwidths are in controls.js. */
import { html, put } from "./dom.js";
import { titled } from "./panel.js";

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
  const patched = (list, at, value) => list.map((old, i) => (i === at ? value : old));

  data.names.forEach((name, a) => {
    const [low, high] = [data.low[a], data.high[a]];
    const axis = html("input", { type: "radio", name: "kx-axis-" + axisGroup, onchange: () => store.set({ column: a }) });
    const shown = html("output", {});
    const slider = html("input", { type: "range", min: low, max: high, step: (high - low) / 200 || "any", oninput: () => store.set({ query: { numeric: patched(store.get().query.numeric, a, Number(slider.value)) } }) });
    const place = cell(words("slices.value", { name }), slider, ({ query }) => {
      slider.value = query.numeric[a];
      put(slider, "aria-valuetext", words.number(query.numeric[a]));
      put(shown, "text", words.number(query.numeric[a]));
    }, shown);
    const chosen = cell(words("slices.axis", { name }), axis, ({ column }) => (axis.checked = column === a));
    rows.push(html("tr", {}, html("th", { scope: "row" }, name), chosen, place));
  });
  data.categorical.forEach(({ name, levels }, b) => {
    const choice = html("select", { onchange: () => store.set({ query: { codes: patched(store.get().query.codes, b, Number(choice.value)) } }) },
      ...levels.map((level, code) => html("option", { value: code }, level)));
    const level = cell(words("slices.value", { name }), choice, ({ query }) => (choice.value = query.codes[b]));
    rows.push(html("tr", {}, html("th", { scope: "row" }, name), html("td", {}), level));
  });
  axisGroup += 1;
  const heads = ["column", "axis.head", "value.head"].map((key) => html("th", { scope: "col" }, words("slices." + key)));
  root.append(html("table", { class: "kx-table" }, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)));
  return {
    update() {
      for (const show of controls) show(store.get());
    },
    destroy() {},
  };
}

let axisGroup = 0; // of radio buttons, where a page has several explorers
