/** Weights as numbers: estimate, effective sample size, the largest weights; an empty window in words; two queries compared. */
import { showPlace } from "./dates.js";
import { html, put } from "./dom.js";
import { KERNELS } from "./kernels.js";

const ROWS = 8;
const CLASSES = 4; // the most probable ones

/** @returns {{update: () => void, destroy: () => void}} */
export function makeWeights(root, context) {
  const { store, data, words } = context;
  const { classes } = data();
  const values = classes ? classes.map((name) => words("probability", { name })) : [words("estimate")];
  const more = values.length - CLASSES;
  const names = [...values.slice(0, CLASSES), ...(more > 0 ? [words("others.classes", { k: more })] : []), ...(classes ? [] : [words("slope")]), words("effective"), words("reach"), words("largest")];
  const facts = names.map((name) => [html("dt", {}, name), html("dd", {})]);
  const message = html("p", { class: "kp-empty", "data-part": "empty" });
  const rows = Array.from({ length: ROWS + 1 }, () => Array.from({ length: 4 }, (_, k) => html(k ? "td" : "th", k ? {} : { scope: "row" })));
  const head = ["row", "x", "y", "share"].map((name) => html("th", { scope: "col" }, words(name)));
  const table = html("table", { class: "kp-table" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows.map((cells) => html("tr", {}, ...cells))));
  root.append(html("h2", {}, words("weights")), html("dl", { class: "kp-facts" }, ...facts.flat()), html("div", { class: "kp-hold" }, table, message), html("p", { class: "kp-hint" }, words("row.count")));

  const write = (cells, texts, share) => {
    texts.forEach((text, k) => put(cells[k], "text", text));
    put(cells[3], "style", share ? `--kp-share:${(100 * Math.min(1, share)).toFixed(1)}%` : null);
  };
  return {
    update() {
      const { settings, query, column } = store.get();
      const now = data();
      const here = context.here();
      const value = (i) => (classes ? classes[now.outputs.findIndex((one) => one[i])] : now.outputs[0][i]);
      const rowOf = (row) => ({ row, x: now.numeric[column][row], y: value(row), weight: here.weight[row] });
      const heaviest = largest(here.weight, ROWS).map(rowOf);
      put(head[1], "text", now.names[column]);
      put(head[2], "text", now.targetName);
      const top = heaviest.length ? heaviest[0].weight : NaN;
      const slope = here.slope ? [words.number(here.slope[column], 4)] : [words("slope.none")];
      const order = Array.from(here.value.keys());
      if (more > 0) order.sort((i, j) => here.value[j] - here.value[i] || i - j);
      order.slice(0, CLASSES).forEach((j, k) => put(facts[k][0], "text", values[j]));
      const texts = order.slice(0, CLASSES).map((j) => words.number(here.value[j], now.outputDigits));
      if (more > 0) texts.push(words.number(order.slice(CLASSES).reduce((sum, j) => sum + here.value[j], 0), 4));
      if (!classes) texts.push(...slope);
      texts.push(words.number(here.effectiveSize), words("of", { k: here.reach, n: now.n }), words.number(top));
      texts.forEach((text, k) => put(facts[k][1], "text", text));
      put(table, "class", (classes ? "kp-table" : "kp-table kp-wrap") + (here.empty ? " kp-gone" : ""));
      put(message, "text", here.empty ? explainEmpty(now, settings, here, column, words) : "");
      let rest = 1;
      for (let k = 0; k < ROWS; k++) {
        const one = heaviest[k];
        if (one === undefined) {
          write(rows[k], ["", "", "", ""], 0);
          continue;
        }
        rest -= one.weight;
        const y = classes ? one.y : words.number(one.y, now.outputDigits);
        write(rows[k], [String(one.row), showPlace(now, column, one.x), y, words.number(one.weight)], one.weight / top);
      }
      const others = here.reach - Math.min(ROWS, heaviest.length);
      write(rows[ROWS], others > 0 ? [words("others", { k: others }), "", "", words.number(Math.max(0, rest))] : ["", "", "", ""], 0);
      say(context, here, query.numeric[column], top, heaviest[0]?.row);
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
  const one = data.numeric.length === 1 && !data.categorical.length;
  const key = data.numeric.map((values) => values[here.nearest]);
  const place = showPlace(data, column, key[column]);
  const reach = words.number((here.bandwidth ?? settings.bandwidth)[column] * KERNELS[settings.kernel].support);
  const why = words(one ? "empty.why" : "empty.why.many", { reach, place, row: here.nearest });
  return [words("empty"), why, words("empty." + (settings.empty || "nan"))].join(" ");
}

function say(context, here, q, top, row) {
  const { words, store } = context;
  const { outputDigits } = context.data();
  const query = showPlace(context.data(), store.get().column, q);
  const values = { query, value: Array.from(here.value, (one) => words.number(one, outputDigits)).join(", "), effective: words.number(here.effectiveSize), reach: here.reach, largest: words.number(top), row };
  const h = (here.bandwidth ?? store.get().settings.bandwidth).map((one) => words.number(one)).join(", ");
  context.say(words(here.empty ? "say.empty" : "say", values) + " " + words("say.h", { h }));
}
