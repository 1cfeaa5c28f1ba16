/** One weighted mean in slow motion: weights, products, their sums, and the quotient, one after the other. */
import { chord } from "./circle.js";
import { html, put } from "./dom.js";
import { KERNELS } from "./kernels.js";
import { largest } from "./weights.js";

const ROWS = 8;
const STAGES = ["weights", "products", "sums", "quotient"];
const PACE = 1200; // milliseconds between stages

/** @returns {{update: () => void, destroy: () => void}} */
export function makeSlowMotion(root, context) {
  const { store, data, words } = context;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const cells = () => Array.from({ length: 4 }, (_, k) => html(k ? "td" : "th", k ? {} : { scope: "row" }));
  const rows = Array.from({ length: ROWS + 2 }, cells);
  const head = ["row", "slow.y", "slow.weight", "slow.product"].map((key) => html("th", { scope: "col" }, words(key)));
  const table = html("table", { class: "kp-table", "data-part": "slow" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows.map((one) => html("tr", {}, ...one))));
  const told = html("p", { role: "status", "data-part": "quotient" });
  const button = html("button", { type: "button", "data-control": "slow", onclick: () => go(stage < STAGES.length ? stage + 1 : 0) });
  root.append(html("h2", {}, words("slow.title")), html("div", { class: "kp-buttons" }, button), table, told);
  let stage = 0; // how many of them are shown
  let timer = 0;

  const go = (to) => {
    clearTimeout(timer);
    stage = to;
    if (stage > 0 && stage < STAGES.length && !still.matches) timer = setTimeout(() => go(stage + 1), PACE);
    show();
  };

  const show = () => {
    const { settings, query, column } = store.get();
    put(root, "hidden", settings.degree > 0);
    put(button, "text", words(stage === 0 ? "slow" : stage < STAGES.length ? "slow.next" : "slow.end"));
    put(table, "hidden", stage === 0);
    put(told, "hidden", stage === 0);
    if (stage === 0) return;
    const { numeric, periods, outputs, weight, outputDigits, n } = data();
    const { profile } = KERNELS[settings.kernel];
    const kernelOf = (i) => (profile(Math.abs(chord(query.numeric[column], numeric[column][i], periods[column]) / context.here().bandwidth[column])) / profile(0)) * (weight ? weight[i] : 1);
    const all = Float64Array.from({ length: n }, (_, i) => kernelOf(i));
    const heaviest = largest(all, ROWS);
    const sum = (over, of) => over.reduce((total, i) => total + of(i), 0);
    const everyone = Array.from(all.keys());
    const product = (i) => all[i] * outputs[0][i];
    const others = everyone.filter((i) => all[i] > 0 && !heaviest.includes(i));
    const line = (name, y, over) => [name, y, words.number(sum(over, (i) => all[i]), 4), stage > 1 ? words.number(sum(over, product), 4) : ""];
    const lines = heaviest.map((i) => line(String(i), words.number(outputs[0][i], outputDigits), [i]));
    if (others.length) lines.push(line(words("others", { k: others.length }), "", others));
    if (stage > 2) lines.push(line(words("slow.sum"), "", everyone));
    rows.forEach((row, k) => row.forEach((cell, c) => put(cell, "text", lines[k] ? lines[k][c] : "")));
    const [above, below] = [sum(everyone, product), sum(everyone, (i) => all[i])];
    const values = { sum: words.number(above, 4), weights: words.number(below, 4), value: words.number(above / below, outputDigits) };
    put(told, "text", words(below > 0 ? "slow." + STAGES[stage - 1] : "slow.none", values));
  };
  return { update: show, destroy: () => clearTimeout(timer) };
}
