/** Two and more columns: which one is the axis, and where the others are fixed. Bandwidths are in controls.js. */
import { axesOf } from "./data.js";
import { showPlace } from "./dates.js";
import { breakable, html, put } from "./dom.js";
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

  /** A menu of levels; `chosen(query)` is the number of the one that the query has. */
  const choice = (name, levels, chosen, patch) => {
    const input = html("select", { onchange: () => store.set({ query: patch(store.get().query, Number(input.value)) }) },
      ...levels.map((level, code) => html("option", { value: code }, level)));
    return cell(words("slices.value", { name }), input, ({ query }) => (input.value = chosen(query)));
  };
  data.names.forEach((name, a) => {
    const [low, high] = [data.low[a], data.high[a]];
    const axis = html("input", { type: "radio", name: "kx-axis-" + axisGroup, onchange: () => store.set({ column: a }) });
    const chosen = axesOf(data).includes(a) ? cell(words("slices.axis", { name }), axis, ({ column }) => (axis.checked = column === a)) : html("td", {});
    const head = html("th", { scope: "row" }, breakable(name));
    if (data.pairs[a]) {
      const level = choice(name, data.pairs[a], ({ numeric }) => numeric[a], ({ numeric }, value) => ({ numeric: patched(numeric, a, value) }));
      rows.push(html("tr", {}, head, chosen, level));
      return;
    }
    const shown = html("output", {});
    const width = data.times[a] ? "width:5em" : "";
    const slider = html("input", { type: "range", style: width, min: low, max: high, step: (high - low) / 200 || "any", oninput: () => store.set({ query: { numeric: patched(store.get().query.numeric, a, Number(slider.value)) } }) });
    const place = cell(words("slices.value", { name }), slider, ({ query }) => {
      slider.value = query.numeric[a];
      put(slider, "aria-valuetext", showPlace(context.data(), a, query.numeric[a], context.data().digits[a] - 1));
      put(shown, "text", showPlace(context.data(), a, query.numeric[a], context.data().digits[a] - 1));
    }, shown);
    rows.push(html("tr", {}, head, chosen, place));
  });
  data.categorical.forEach(({ name, levels }, b) => {
    const level = choice(name, levels, ({ codes }) => codes[b], ({ codes }, value) => ({ codes: patched(codes, b, value) }));
    rows.push(html("tr", {}, html("th", { scope: "row" }, breakable(name)), html("td", {}), level));
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

let axisGroup = Math.floor(1e9 * Math.random()); // of radio buttons, where a page has several explorers
