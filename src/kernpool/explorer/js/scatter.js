/** The main chart: rows, curve, band, truth; at the query the weights, the local fit, and the kernel's bump. */
import { areaPath, extent, linePath, linearScale, makeChart } from "./chart.js";
import { makeCurve } from "./curve.js";
import { withRows } from "./data.js";
import { axisName, showPlace, ticksOf } from "./dates.js";
import { html, put, svg } from "./dom.js";
import { listenToPointer } from "./drag.js";
import { KERNELS } from "./kernels.js";
import { PATH_ROWS, STRIP, discsOf, drawBump, drawPoints, drawWeights } from "./marks.js";
import { spaced } from "./panel.js";
import { canEdit, makePointTools } from "./points.js";
import { makePool } from "./pool.js";
import { domainOf, moveQuery } from "./actions.js";
import { canBeSure, makeSure } from "./delayed_intervals.js";
import { isNearest, neighborsOf } from "./widths.js";

const REST = 500; // milliseconds without a change after which a curve is one to compare the next with
const LANE = 0.08; // height of a class's lane above probability 1

// Lines of classes differ in more than their colour. Ten colours and seven patterns: 70 classes.
const DASHES = [null, "11 4", "3 4", "13 4 3 4", "20 6", "7 3 2 3 2 3", "6 6"];
const dashOf = (j) => DASHES[j % DASHES.length];

/** @returns {{update: (changed: Set<string>) => void, destroy: () => void}} */
export function makeScatter(root, context) {
  const { store, data, words } = context;
  const { classes } = data();
  const chart = makeChart(root, { height: 440, left: classes ? 84 : 54, bottom: 42, top: 18 }, () => update(null));
  const parts = makeLayers(chart, data().outputs.length, classes);
  const slider = html("input", { type: "range", min: 0, max: 400, class: "kp-query", "data-control": "query" });
  const hint = html("p", { class: "kp-hint" });
  const binned = html("p", { class: "kp-hint kp-binned" });
  const legend = makeLegend(context);
  root.prepend(legend.element);
  const isSure = canBeSure(data(), context.payload);
  const band = html("input", { type: "checkbox", "data-control": "band", onchange: () => store.set({ band: band.checked }) });
  const tools = html("div", { class: "kp-tools" }, isSure ? html("label", {}, band, " " + words(data().numeric.length === 1 && !data().periods[0] ? "band.switch" : "band.switch.one")) : null);
  const points = canEdit(context) ? makePointTools(context, chart) : null;
  if (points) tools.append(points.element);
  root.append(slider, tools, hint, binned);

  let held = false;
  const hold = () => {
    held = !held;
    put(hint, "text", words(held ? "held" : "hint"));
    slider.focus({ preventScroll: true });
  };
  put(hint, "text", words("hint"));
  listenToPointer(chart, context, { isHeld: () => held, hold, taken: () => points.focus() });
  slider.addEventListener("input", () => {
    const [low, high] = domainOf(data(), store.get().column);
    moveQuery(context, low + (slider.value / 400) * (high - low));
  });
  const curve = makeCurve(context, (places, values) => {
    const m = places.length;
    root.numbers = { places, values };
    parts.curves.forEach((path, j) => put(path, "d", linePath(places, values.subarray(j * m, (j + 1) * m), chart.x, chart.y)));
  }, (found) => put(binned, "text", found ? words("binned", { ...found, error: words.number(found.error, 2) }) : ""));
  let sureness = null;
  const drawBand = (found) => {
    sureness = found;
    for (const name of ["wide", "band"]) {
      const one = found && found[name];
      put(parts[name], "d", one ? areaPath(found.places, one.lower, one.upper, chart.x, chart.y) : null);
    }
    showBand();
  };
  const showBand = () => {
    const on = store.get().band;
    band.checked = on;
    for (const name of ["wide", "band"]) put(parts[name], "visibility", on ? null : "hidden");
    legend.showBand(on && sureness, sureness?.wide);
  };
  const sure = isSure ? makeSure(context, drawBand) : null;

  // The curve before the last change of the settings: that of the time when they rested, so that one drag is one change.
  let timer = 0;
  let [rested, earlier, drawn] = [null, null, null];
  const rest = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (context.el.matches(":active") ? rest() : (rested = root.numbers)), REST);
  };
  const compare = (isOther) => {
    if (isOther || rested) earlier = isOther ? null : rested;
    rested = null;
    rest();
    legend.showEarlier(earlier);
    drawEarlier();
  };
  const drawEarlier = () => {
    if (earlier === drawn) return;
    drawn = earlier;
    put(parts.earlier, "d", earlier && !data().classes ? linePath(earlier.places, earlier.values, chart.x, chart.y) || null : null);
  };
  const drawDraws = () => {
    const { draws, settings, column, query } = store.get();
    const places = spaced(...domainOf(data(), column), 120);
    const lines = draws.map((rows) => linePath(places, makePool(withRows(data(), rows), settings).curve(column, places, query), chart.x, chart.y));
    put(parts.draws, "d", lines.join("") || null);
  };

  function update(changed) {
    const any = (...keys) => !changed || keys.some((key) => changed.has(key));
    const { column, query, pins } = store.get();
    if (any("settings", "column", "sample")) compare(any("column", "sample"));
    if (any("column", "sample", "theme")) {
      placeRows(chart, data(), column, words);
      drawFixed(chart, parts, data(), column);
      drawBand(sureness);
      put(slider, "style", `margin-left:${chart.left - 8}px;width:${chart.inner + 16}px`);
      put(slider, "aria-label", words("query.of", { name: data().names[column] }));
    }
    if (any("settings", "column", "sample", "query", "theme")) {
      const ends = domainOf(data(), column);
      curve.update(chart.inner, ends);
      drawQuery(chart, parts, context);
      const q = query.numeric[column];
      slider.value = Math.round((400 * (q - ends[0])) / (ends[1] - ends[0]));
      put(slider, "aria-valuetext", showPlace(data(), column, q));
      if (sure) sure.update();
    }
    if (any("settings", "sample", "draws", "theme")) drawDraws();
    if (any("band")) showBand();
    if (points) points.update();
    if (any("picked", "sample", "theme")) drawPicked(chart, parts.picked, store.get().picked);
    if (any("pins", "settings", "column", "sample", "theme")) drawPins(chart, parts.pins, pins, context);
    legend.update(column);
  }
  return {
    update,
    destroy() {
      chart.destroy();
      curve.stop();
      clearTimeout(timer);
      if (sure) sure.stop();
    },
  };
}

/** All paths, from the lowest to the highest; one of a kind per output. */
function makeLayers(chart, outputs, classes) {
  const path = (name, place) => chart.layer("path", { class: "kp-" + name }, place);
  const each = (make) =>
    Array.from({ length: outputs }, (_, j) => {
      const element = make();
      if (classes) element.style.setProperty("--kp-tint", `var(--kp-class-${j % 10})`);
      return element;
    });
  const discs = chart.canvas.cloneNode();
  chart.canvas.after(discs);
  return {
    discs,
    reach: chart.layer("rect", { class: "kp-reach" }),
    wide: path("wide"), band: path("band"),
    points: each(() => path("points")),
    draws: path("draws"), earlier: path("earlier"),
    truth: path("truth"), weights: path("weights"),
    plane: path("plane"),
    curves: each(() => path("curve")).map((line, j) => {
      put(line, "stroke-dasharray", classes ? dashOf(j) : null);
      return line;
    }),
    picked: chart.layer("circle", { class: "kp-picked", r: 8 }),
    strip: chart.layer("rect", { class: "kp-strip", "data-part": "strip" }),
    bump: path("bump"), rule: path("rule"),
    marks: each(() => chart.layer("circle", { class: "kp-mark", r: 5 })),
    grip: path("grip", chart.over),
    label: chart.layer("text", { class: "kp-h" }, chart.over),
    pins: ["a", "b"].map((name) => [path("pin kp-pin-" + name, chart.over), chart.layer("text", { class: "kp-pin-" + name, "text-anchor": "middle" }, chart.over), path("pinned kp-pin-" + name)]),
  };
}

/** Scales, axes, and where every row lies: chart.px, chart.py, chart.classOf. */
function placeRows(chart, data, column, words) {
  const { classes, outputs, names, targetName, n } = data;
  chart.base = chart.yRange[0];
  const range = [chart.base - STRIP - 4, chart.top];
  const truth = column === 0 && data.truth ? data.truth.y : null;
  const x = linearScale(domainOf(data, column), chart.xRange);
  const ends = extent([(data.start ?? data).outputs[0], truth], 0.05);
  const y = linearScale(classes ? [-0.02, 1.05 + LANE * classes.length] : extent([ends, outputs[0]]), range);
  chart.axes({ x, y, xTicks: ticksOf(data, column, x, chart.inner), yTicks: classes ? [0, 0.25, 0.5, 0.75, 1, ...laneNames(classes)] : null, xLabel: axisName(data, column), yLabel: classes ? words("probability", { name: targetName }) : targetName });
  chart.label(words("chart", { target: targetName, name: names[column] }));
  chart.classOf = classes ? Uint16Array.from({ length: n }, (_, i) => outputs.findIndex((one) => one[i])) : new Uint16Array(n);
  // Rows of a class lie in its lane, shifted up and down so that they do not hide each other, always in the same way.
  const height = (i) => (classes ? 1.02 + LANE * (chart.classOf[i] + 0.5 + 0.32 * Math.sin(i * 12.9898)) : outputs[0][i]);
  chart.px = Float64Array.from(data.numeric[column], x);
  chart.py = Float64Array.from({ length: n }, (_, i) => y(height(i)));
}

/** Ticks with the names of the lanes, where there is room. */
function laneNames(classes) {
  const short = (name) => (name.length > 11 ? name.slice(0, 10) + "…" : name);
  return classes.length > 10 ? [] : classes.map((name, j) => [1.02 + LANE * (j + 0.5), short(name)]);
}

function drawPicked(chart, ring, picked) {
  put(ring, "visibility", picked === null ? "hidden" : null);
  if (picked === null) return;
  put(ring, "cx", chart.px[picked]);
  put(ring, "cy", chart.py[picked]);
}

function drawFixed(chart, parts, data, column) {
  chart.tint = getComputedStyle(parts.weights).stroke;
  drawPoints(chart, parts.points, (i) => chart.classOf[i]);
  put(parts.truth, "d", data.truth && column === 0 ? linePath(data.truth.x, data.truth.y, chart.x, chart.y) : null);
  const { base, inner, left, top } = chart;
  for (const [name, value] of Object.entries({ x: left, y: base - STRIP, width: inner, height: STRIP })) put(parts.strip, name, value);
  put(parts.reach, "y", top);
  put(parts.reach, "height", base - top);
  put(parts.discs, "hidden", data.n <= PATH_ROWS);
}

function drawQuery(chart, parts, context) {
  const { settings, query, column } = context.store.get();
  const here = context.here(), data = context.data();
  const q = query.numeric[column];
  const bandwidth = here.bandwidth ?? settings.bandwidth, h = bandwidth[column];
  const { support } = KERNELS[settings.kernel];
  const { x, y, base, top } = chart;
  drawWeights(chart, parts.discs, parts.weights, here.weight);
  parts.marks.forEach((mark, j) => {
    const known = Number.isFinite(here.value[j]);
    put(mark, "visibility", known ? null : "hidden");
    if (known) put(mark, "cx", x(q).toFixed(1));
    if (known) put(mark, "cy", y(here.value[j]).toFixed(1));
  });
  put(parts.rule, "d", `M${x(q).toFixed(1)} ${top}V${base}`);
  const half = h * Math.min(support, 1);
  const slope = here.slope ? here.slope[column] : 0;
  const ends = [-half, half];
  put(parts.plane, "d", here.empty || parts.marks.length > 1 ? null : linePath(ends.map((t) => q + t), ends.map((t) => here.value[0] + slope * t), x, y));
  const finite = Number.isFinite(support);
  const [from, to] = [-1, 1].map((side) => Math.min(chart.width, Math.max(0, x(q + side * h * (finite ? support : 0)))));
  put(parts.reach, "x", from.toFixed(1));
  put(parts.reach, "width", data.periods[column] ? 0 : (to - from).toFixed(1));
  const neighbors = isNearest(settings) ? `k = ${neighborsOf(data, settings)}, ` : "";
  drawBump(chart, parts, { ...settings, bandwidth }, data, column, q, `${neighbors}h = ${context.words.number(h)}`);
}

function drawPins(chart, lines, pins, { store, data, pool }) {
  const { column } = store.get();
  lines.forEach(([line, name, discs], i) => {
    put(discs, "d", pins[i] && data().n <= PATH_ROWS ? discsOf(chart, pool().at(pins[i]).weight) : null);
    const at = pins[i] ? chart.x(pins[i].numeric[column]).toFixed(1) : 0;
    put(line, "d", pins[i] ? `M${at} ${chart.top}V${chart.base}` : null);
    put(name, "x", at);
    put(name, "y", chart.top - 5);
    put(name, "text", pins[i] ? "AB"[i] : "");
  });
}

function makeLegend({ data, words, payload }) {
  const { classes, truth, n } = data();
  const sample = n < payload.rows && !payload.samples ? html("span", {}, words("data.part", { n, rows: payload.rows })) : null;
  const item = (name, text, tint) => html("span", { class: "kp-key kp-key-" + name, style: tint }, text);
  const lines = classes
    ? classes.map((name, j) => {
        const line = svg("svg", { width: 30, height: 6, "aria-hidden": "true" }, svg("path", { d: "M0 3H30", "stroke-dasharray": dashOf(j) }));
        return html("span", { class: "kp-key kp-key-class", style: `--kp-tint:var(--kp-class-${j % 10})` }, line, words("probability", { name }));
      })
    : [item("points", words("data")), item("curve", words("curve"))];
  const earlier = classes ? null : item("earlier", words("earlier"));
  const known = truth ? item("truth", words("truth")) : null;
  const wide = item("wide", words("band.all"));
  const sure = canBeSure(data(), payload) ? [item("band", words("band")), data().numeric.length === 1 ? wide : null].filter(Boolean) : [];
  const element = html("p", { class: "kp-legend" }, ...lines, known, item("weights", words("weight")), classes ? null : item("plane", words("plane")), ...sure, earlier, sample);
  const shown = (one, is) => one && put(one, "style", is ? null : "visibility:hidden");
  return { element, showEarlier: (is) => shown(earlier, is), showBand: (on, isWide) => sure.forEach((one) => shown(one, on && (one !== wide || isWide))), update: (column) => shown(known, column === 0) };
}
