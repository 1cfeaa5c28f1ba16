/** Weights as numbers: estimate, effective sample size, the largest weights; an empty window in words; two queries compared. */
import { hasEngine } from "./ask.js";
import { html, put } from "./dom.js";
import { KERNELS } from "./kernels.js";

const ROWS = 8;

/** @returns {{update: () => void, destroy: () => void}} */
export function makeWeights(root, context) {
  const { store, data, words, payload } = context;
  const { classes } = data();
  const values = classes ? classes.map((name) => words("probability", { name })) : [words("estimate")];
  const names = [...(values.length > 4 ? values.slice(0, 4) : values), ...(classes ? [] : [words("slope")]), words("effective"), words("reach"), words("largest")];
  const facts = names.map((name) => [html("dt", {}, name), html("dd", {})]);
  const message = html("p", { class: "kp-empty", "data-part": "empty" });
  const rows = Array.from({ length: ROWS + 1 }, () => Array.from({ length: 4 }, (_, k) => html(k ? "td" : "th", k ? {} : { scope: "row" })));
  const head = ["row", "x", "y", "share"].map((name) => html("th", { scope: "col" }, words(name)));
  const table = html("table", { class: "kp-table" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows.map((cells) => html("tr", {}, ...cells))));
  root.append(html("h2", {}, words("weights")), html("dl", { class: "kp-facts" }, ...facts.flat()), html("div", { class: "kp-hold" }, table, message));

  const write = (cells, texts, share) => {
    texts.forEach((text, k) => put(cells[k], "text", text));
    put(cells[3], "style", share ? `--kp-share:${(100 * Math.min(1, share)).toFixed(1)}%` : null);
  };
  const show = (found) => {
    const { column, query, settings } = store.get();
    const now = data();
    put(head[1], "text", now.names[column]);
    put(head[2], "text", now.targetName);
    const top = found.rows.length ? found.rows[0].weight : NaN;
    const slope = found.slope ? [words.number(found.slope[column], 4)] : ["–"];
    const texts = [...Array.from(found.value.slice(0, 4), (value) => words.number(value, 4)), ...(classes ? [] : slope)];
    texts.push(words.number(found.effectiveSize), words("of", { k: found.reach, n: hasEngine(context) ? payload.rows : now.n }), words.number(top));
    texts.forEach((text, k) => put(facts[k][1], "text", text));
    put(table, "class", found.empty ? "kp-table kp-gone" : "kp-table");
    put(message, "text", found.empty ? explainEmpty(now, settings, found, column, words) : "");
    let rest = 1;
    rows.slice(0, ROWS).forEach((cells, k) => {
      const one = found.rows[k];
      if (!one) return write(cells, ["", "", "", ""], 0);
      rest -= one.weight;
      const value = classes ? classes[one.target.findIndex((part) => part)] : words.number(one.target[0], 4);
      write(cells, [String(one.row), words.number(one.key[column], 4), value, words.number(one.weight)], one.weight / top);
    });
    const others = found.reach - Math.min(ROWS, found.rows.length);
    write(rows[ROWS], others > 0 ? [words("others", { k: others }), "", "", words.number(Math.max(0, rest))] : ["", "", "", ""], 0);
    say(context, found, query.numeric[column], top);
  };
  return {
    update() {
      const here = context.here();
      const { numeric, outputs } = data();
      const row = (i) => ({ row: i, weight: here.weight[i], key: numeric.map((one) => one[i]), target: outputs.map((one) => one[i]) });
      show({ ...here, rows: here.rows ?? largest(here.weight, ROWS).map(row) });
    },
    destroy() {},
  };
}

/** Indices of the k largest positive weights, in falling order. */
export function largest(weight, k) {
  const best = [];
  for (let i = 0; i < weight.length; i++) {
    const w = weight[i];
    if (!(w > 0) || (best.length === k && w <= weight[best[k - 1]])) continue;
    let at = best.length;
    while (at > 0 && weight[best[at - 1]] < w) at--;
    best.splice(at, 0, i);
    if (best.length > k) best.pop();
  }
  return best;
}

function explainEmpty(data, settings, here, column, words) {
  if (here.nearest < 0) return [words("empty"), words("empty." + (settings.empty || "nan"))].join(" ");
  const one = data.numeric.length === 1 && !data.categorical.length;
  const place = words.number(data.numeric[column][here.nearest], 4);
  const reach = words.number(settings.bandwidth[column] * KERNELS[settings.kernel].support);
  const why = words(one ? "empty.why" : "empty.why.many", { reach, place, row: here.nearest });
  return [words("empty"), why, words("empty." + (settings.empty || "nan"))].join(" ");
}

function say(context, here, q, top) {
  const { words, store } = context;
  const query = words.number(q, 4);
  const values = { query, value: Array.from(here.value, (one) => words.number(one, 4)).join(", "), effective: words.number(here.effectiveSize), reach: here.reach, largest: words.number(top), row: here.rows[0]?.row };
  const h = store.get().settings.bandwidth.map((one) => words.number(one)).join(", ");
  context.say(words(here.empty ? "say.empty" : "say", values) + " " + words("say.h", { h }));
}
