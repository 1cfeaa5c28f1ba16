/** Two queries side by side: the pinned ones, or the one that is pinned and the current one. */
import { showPlace } from "./dates.js";
import { breakable, html, put } from "./dom.js";
import { pinQuery } from "./actions.js";

/** @returns {{update: () => void, destroy: () => void}} */
export function makeCompare(root, context) {
  const { store, data, pool, here, words } = context;
  const pin = html("button", { type: "button", "data-control": "pin", "aria-keyshortcuts": "P", onclick: () => pinQuery(context) }, words("pin"));
  const clear = html("button", { type: "button", "data-control": "unpin", onclick: () => store.set({ pins: [] }) }, words("unpin"));
  const head = ["A", "B", words("difference")].map((text) => html("th", { scope: "col" }, text));
  const body = html("tbody", {});
  const corner = html("td", {});
  const table = html("table", { class: "kp-table kp-wrap kp-pairs", "data-part": "compare" }, html("thead", {}, html("tr", {}, corner, ...head)), body);
  root.append(html("h2", {}, words("compare")), html("p", { class: "kp-buttons" }, pin, clear, html("span", { class: "kp-hint" }, words("compare.hint"))), table);
  let rows = [];

  const show = (k, [name, a, b, difference]) => {
    if (!rows[k]) {
      rows[k] = [html("th", { scope: "row" }), html("td", {}), html("td", {}), html("td", {})];
      body.append(html("tr", {}, ...rows[k]));
    }
    [breakable(name), a, b, difference].forEach((text, c) => put(rows[k][c], "text", text));
  };
  return {
    update(changed) {
      const { pins, query } = store.get();
      if (changed && pins.length === 2 && !["pins", "settings", "sample", "language"].some((key) => changed.has(key))) return;
      clear.disabled = !pins.length;
      put(table, "hidden", !pins.length);
      const both = pins.length === 2 ? pins : [pins[0], query];
      put(head[1], "text", pins.length === 2 ? "B" : words("now"));
      differences(data(), both, (one) => (one === query ? here() : pool().at(one)), words).forEach((row, k) => show(k, row));
    },
    destroy() {},
  };
}

/** Rows of the table: name, first, second, difference. */
function differences(data, queries, at, words) {
  const [a, b] = queries;
  const [p, q] = queries.map((query) => query && at(query));
  const row = (name, of, digits = 4) => {
    const [x, y] = [a ? of(p, a) : NaN, of(q, b)];
    return [name, words.number(x, digits), words.number(y, digits), words.number(y - x, 3)];
  };
  const count = (x) => (x === undefined ? "–" : String(x).replace("-", "−"));
  const slope = (name) => (data.names.length > 1 ? words("slope.of", { name }) : words("slope"));
  return [
    ...data.names.map((name, k) => {
      const pair = data.pairs[k];
      if (pair) return [name, a ? pair[a.numeric[k]] : "–", pair[b.numeric[k]], ""];
      if (!data.times[k]) return row(name, (_, query) => query.numeric[k], data.digits[k]);
      const days = a ? words.number(b.numeric[k] - a.numeric[k], 3) : "–";
      return [name, a ? showPlace(data, k, a.numeric[k]) : "–", showPlace(data, k, b.numeric[k]), days];
    }),
    ...data.categorical.map(({ name, levels }, k) => [name, a ? (levels[a.codes[k]] ?? "–") : "–", levels[b.codes[k]] ?? "–", ""]),
    ...Array.from(q.value, (_, j) => row(data.classes ? words("probability", { name: data.classes[j] }) : words("estimate"), (one) => one.value[j], data.outputDigits)),
    ...(data.classes ? [] : data.names.map((name, k) => row(slope(name), (one) => (one.slope ? one.slope[k] : NaN)))),
    row(words("effective"), (one) => one.effectiveSize, 3),
    [words("reach"), count(p?.reach), count(q.reach), count(p ? q.reach - p.reach : undefined)],
    [words("shared"), "", "", words.number(p ? p.weight.reduce((sum, weight, i) => sum + Math.min(weight, q.weight[i]), 0) : NaN)],
  ];
}
