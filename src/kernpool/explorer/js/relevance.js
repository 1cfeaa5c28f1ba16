/** Relevance of the columns as bars: spread / h of numeric ones, 1 - smoothing / its largest value of categorical ones. */
import { html, put } from "./dom.js";
import { titled } from "./panel.js";

const IQR_OF_NORMAL = 1.349; // as kernpool.core.input_validation.column_spread has it

export function makeRelevance(root, context) {
  const { store, words, payload } = context;
  titled(root, words("relevance.title"), words("relevance.note"));
  const data = context.data();
  const names = columnNames(data);
  const spread = data.numeric.map((_, a) => columnSpread(data, a));
  const rows = names.map((name) => {
    const bar = html("span", { class: "kx-share" });
    const found = html("span", { class: "kx-found" });
    const number = html("td", { class: "kx-number" });
    const row = html("tr", {}, html("th", { scope: "row" }, name), html("td", { class: "kx-track", "aria-hidden": "true" }, html("div", {}, bar, found)), number);
    return { row, bar, found, number };
  });
  const heads = html("tr", {}, html("th", { scope: "col" }, words("relevance.column")), html("td", { "aria-hidden": "true" }), html("th", { scope: "col" }, words("relevance.value")));
  root.append(html("table", { class: "kx-table" }, html("thead", {}, heads), html("tbody", {}, ...rows.map(({ row }) => row))));
  if (payload.relevance) root.append(html("p", { class: "kp-hint" }, words("relevance.model")));
  return {
    update() {
      const { settings } = store.get();
      const now = [...spread.map((s, a) => s / settings.bandwidth[a]), ...data.categorical.map((column, b) => (column.largest > 0 ? 1 - settings.smoothing[b] / column.largest : 0))];
      root.numbers = { now };
      const model = payload.relevance || [];
      // Numeric columns share a scale, which the largest fills; categorical ones end at 1.
      const most = Math.max(1, ...now.slice(0, spread.length), ...model.slice(0, spread.length));
      rows.forEach(({ bar, found, number }, c) => {
        const whole = c < spread.length ? most : 1;
        put(bar, "style", `width:${(100 * now[c]) / whole}%`);
        put(found, "style", model[c] === undefined ? "display:none" : `left:${(100 * model[c]) / whole}%`);
        put(number, "text", words.number(now[c], 3));
      });
    },
    destroy() {},
  };
}

/** Names of the numeric columns, then of the categorical ones. */
export function columnNames(data) {
  return [...data.names, ...data.categorical.map(({ name }) => name)];
}

/** The smaller of the standard deviation and the scaled interquartile range, weighted; 1 for a constant column. */
export function columnSpread(data, a) {
  const { n, weight } = data;
  const values = data.numeric[a];
  const share = (i) => (weight ? weight[i] : 1);
  let total = 0;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    total += share(i);
    sum += share(i) * values[i];
  }
  const center = sum / total;
  let square = 0;
  for (let i = 0; i < n; i++) square += share(i) * (values[i] - center) ** 2;
  const deviation = Math.sqrt(square / (total >= 2 ? total - 1 : total));
  const quartile = (level) => {
    let below = 0;
    for (const i of data.sorted[a]) if ((below += share(i)) >= level * total && share(i) > 0) return values[i];
    return data.high[a];
  };
  const range = (quartile(0.75) - quartile(0.25)) / IQR_OF_NORMAL;
  if (data.high[a] === data.low[a]) return 1;
  return range > 0 ? Math.min(deviation, range) : deviation;
}
