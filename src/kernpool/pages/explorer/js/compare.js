/** Two queries side by side: the pinned ones, or the one that is pinned and the current one. */
import { html, put } from "./dom.js";
import { pinQuery } from "./moves.js";

/** @returns {{update: () => void, destroy: () => void}} */
export function makeCompare(root, context) {
  const { store, data, pool, words } = context;
  const pin = html("button", { type: "button", "data-control": "pin", "aria-keyshortcuts": "P", onclick: () => pinQuery(context) }, words("pin"));
  const clear = html("button", { type: "button", "data-control": "unpin", onclick: () => store.set({ pins: [] }) }, words("unpin"));
  const hint = html("p", { class: "kp-hint" }, words("compare.hint"));
  const head = ["A", "B", words("difference")].map((text) => html("th", { scope: "col" }, text));
  const body = html("tbody", {});
  const corner = html("td", {});
  const table = html("table", { class: "kp-table kp-pairs", "data-part": "compare" }, html("thead", {}, html("tr", {}, corner, ...head)), body);
  root.append(html("h2", {}, words("compare")), html("p", { class: "kp-buttons" }, pin, clear), html("div", { class: "kp-hold" }, table, hint));
  let rows = [];

  const show = (k, [name, a, b, difference]) => {
    if (!rows[k]) {
      rows[k] = [html("th", { scope: "row" }), html("td", {}), html("td", {}), html("td", {})];
      body.append(html("tr", {}, ...rows[k]));
    }
    [name, a, b, difference].forEach((text, c) => put(rows[k][c], "text", text));
  };
  return {
    update(changed) {
      const { pins, query } = store.get();
      if (changed && pins.length !== 1 && !["pins", "settings", "sample", "language"].some((key) => changed.has(key))) return;
      clear.disabled = !pins.length;
      put(table, "class", "kp-table kp-pairs" + (pins.length ? "" : " kp-gone"));
      put(hint, "text", pins.length ? "" : words("compare.hint"));
      const both = pins.length === 2 ? pins : [pins[0] || query, query];
      put(head[1], "text", pins.length === 2 ? "B" : words("now"));
      differences(data(), both, pool(), words).forEach((row, k) => show(k, row));
    },
    destroy() {},
  };
}

/** Rows of the table: name, first, second, difference. */
function differences(data, queries, pool, words) {
  const [a, b] = queries;
  const [p, q] = queries.map((query) => pool.at(query));
  const row = (name, x, y, digits = 4) => [name, words.number(x, digits), words.number(y, digits), words.number(y - x, 3)];
  const shared = p.weight.reduce((sum, weight, i) => sum + Math.min(weight, q.weight[i]), 0);
  return [
    ...data.names.map((name, k) => row(name, a.numeric[k], b.numeric[k])),
    ...data.categorical.map(({ name, levels }, k) => [name, levels[a.codes[k]], levels[b.codes[k]], ""]),
    ...p.value.map((value, j) => row(data.classes ? words("probability", { name: data.classes[j] }) : words("estimate"), value, q.value[j])),
    ...(data.classes ? [] : data.names.map((name, k) => row(data.names.length > 1 ? `${words("slope")} (${name})` : words("slope"), p.slope ? p.slope[k] : NaN, q.slope ? q.slope[k] : NaN))),
    row(words("effective"), p.effectiveSize, q.effectiveSize, 3),
    [words("reach"), p.reach, q.reach, q.reach - p.reach].map((x) => String(x).replace("-", "−")),
    [words("shared"), "", "", words.number(shared)],
  ];
}
