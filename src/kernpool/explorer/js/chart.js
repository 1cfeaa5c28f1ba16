/** Scales, ticks, axes and lines: what every chart of the explorer is drawn with. */
import { html, svg, put } from "./dom.js";

/** A linear map from data to pixels: `s(value)`, `s.invert(pixel)`, `s.domain`, `s.ticks(count)`. */
export function linearScale(domain, range) {
  const [a, b] = domain;
  const [p, q] = range;
  const slope = (q - p) / (b - a || 1);
  const scale = (value) => p + (value - a) * slope;
  scale.invert = (pixel) => a + (pixel - p) / slope;
  scale.ticks = (count) => niceTicks(a, b, count);
  return Object.assign(scale, { domain, range });
}

/** The same for logarithms. */
export function logScale(domain, range) {
  const inner = linearScale(domain.map(Math.log), range);
  const scale = (value) => inner(Math.log(value));
  scale.invert = (pixel) => Math.exp(inner.invert(pixel));
  scale.ticks = (count) => logTicks(domain[0], domain[1], count);
  return Object.assign(scale, { domain, range });
}

/** At most about `count` round values from `low` to `high`. */
export function niceTicks(low, high, count = 6) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(15)));
}

/** Ticks 1, 2, 5 of every power of ten; only the powers where that would be too many. */
export function logTicks(low, high, count = 6) {
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const all = [];
    for (let power = from; power <= to; power++) for (const f of factors) all.push(Number((f * 10 ** power).toPrecision(6)));
    const inside = all.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    if (inside.length <= count || factors.length === 1) return inside.length > 1 ? inside : niceTicks(low, high, count);
  }
  return [low, high];
}

/** Least and largest finite value of several arrays, with a margin (a share of the range) on both sides. */
export function extent(arrays, margin = 0) {
  let low = Infinity;
  let high = -Infinity;
  for (const array of arrays)
    for (const value of array || [])
      if (Number.isFinite(value)) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
  if (!(low <= high)) return [0, 1];
  const size = high - low || Math.abs(low) || 1;
  return [low - margin * size, high + margin * size];
}

/** Path of a line; a NaN interrupts it. `xs`, `ys` are data, `x`, `y` scales. */
export function linePath(xs, ys, x, y) {
  let path = "";
  let pen = "M";
  for (let i = 0; i < xs.length; i++) {
    if (Number.isNaN(ys[i])) pen = "M";
    else {
      path += pen + x(xs[i]).toFixed(1) + " " + y(ys[i]).toFixed(1);
      pen = "L";
    }
  }
  return path;
}

/** Path of the areas between two lines. */
export function areaPath(xs, lower, upper, x, y) {
  let path = "";
  for (let i = 0; i < xs.length; i++) {
    const first = i;
    while (i < xs.length && !Number.isNaN(lower[i]) && !Number.isNaN(upper[i])) i++;
    if (i - first < 2) continue;
    const back = xs.slice(first, i).reverse();
    path += linePath(xs.slice(first, i), upper.slice(first, i), x, y);
    path += linePath(back, lower.slice(first, i).reverse(), x, y).replace("M", "L") + "Z";
  }
  return path;
}

/**
 * A chart whose size follows its element. `draw()` is called after every change of size.
 * Layers of paths are clipped to the plot; the canvas lies below them.
 * @param {HTMLElement} root
 * @param {{label?: string, height?: number, left?: number, bottom?: number, top?: number, right?: number}} options
 */
export function makeChart(root, options, draw) {
  const { height = 240, left = 48, right = 12, top = 10, bottom = 40, label = "" } = options;
  const id = "kp-clip-" + ++charts;
  const clip = svg("rect", {});
  const axes = svg("g", { class: "kp-axes" });
  const plot = svg("g", { "clip-path": `url(#${id})` });
  const over = svg("g", {});
  const picture = svg("svg", { role: "img", "aria-label": label }, svg("clipPath", { id }, clip), axes, plot, over);
  const canvas = html("canvas", { "aria-hidden": "true" });
  const element = html("div", { class: "kp-chart", style: `height:${height}px` }, canvas, picture);
  root.append(element);
  const chart = { element, svg: picture, canvas, plot, over, x: null, y: null, left, right, top, height, label: (text) => put(picture, "aria-label", text) };

  /** Add an element to the plot (clipped), or to `over` (not clipped). */
  chart.layer = (tag, attributes, place = plot) => place.appendChild(svg(tag, attributes));

  /** Data coordinates of a pointer event. */
  chart.at = (event) => {
    const box = picture.getBoundingClientRect();
    return [chart.x.invert(event.clientX - box.left), chart.y.invert(event.clientY - box.top)];
  };

  /** A context of the canvas, cleared, in CSS pixels, clipped to the plot. */
  chart.paint = (sheet = canvas) => {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(chart.width * ratio), Math.round(height * ratio)];
    if (sheet.width !== w || sheet.height !== h) Object.assign(sheet, { width: w, height: h });
    const pen = sheet.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, w, h);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return pen;
  };

  /** Set scales and draw axes; nothing is made anew while scales and labels stay. */
  let drawn = "";
  chart.axes = ({ x, y, xLabel = "", yLabel = "", xTicks, yTicks, format = showTick }) => {
    Object.assign(chart, { x, y });
    const key = JSON.stringify([x.domain, y.domain, xLabel, yLabel, xTicks, yTicks, chart.width]);
    if (key === drawn) return;
    drawn = key;
    const base = height - bottom;
    const parts = [svg("path", { d: `M${left} ${top}V${base}H${chart.width - right}` })];
    const [across, below] = labelled(xTicks || x.ticks(Math.max(2, Math.floor(chart.inner / 70))), format, xLabel);
    const [upward, beside] = labelled(yTicks || y.ticks(Math.max(2, Math.floor((base - top) / 45))), format, yLabel);
    for (const [value, text] of across)
      parts.push(svg("path", { d: `M${x(value)} ${base}v4` }), svg("text", { x: x(value), y: base + 16, "text-anchor": "middle" }, text));
    for (const [value, text] of upward)
      parts.push(svg("path", { class: "kp-grid", d: `M${left} ${y(value)}H${chart.width - right}` }), svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text));
    parts.push(svg("text", { class: "kp-name", x: (left + chart.width - right) / 2, y: height - 4, "text-anchor": "middle" }, below));
    parts.push(svg("text", { class: "kp-name", transform: `translate(11 ${(top + base) / 2})rotate(-90)`, "text-anchor": "middle" }, beside));
    axes.replaceChildren(...parts);
  };

  const measure = () => {
    const width = Math.max(left + right + 40, Math.round(element.clientWidth) || chart.width || 600);
    if (width === chart.width) return false;
    chart.width = width;
    chart.inner = width - left - right;
    Object.assign(chart, { xRange: [left, width - right], yRange: [height - bottom, top] });
    put(picture, "viewBox", `0 0 ${width} ${height}`);
    for (const [name, value] of Object.entries({ x: left, y: top, width: chart.inner, height: height - bottom - top })) put(clip, name, value);
    return true;
  };
  const observer = new ResizeObserver(() => measure() && draw && draw());
  observer.observe(element);
  chart.measure = measure;
  chart.destroy = () => observer.disconnect();
  measure();
  return chart;
}

let charts = Math.floor(1e9 * Math.random()); // a document may hold the module more than once

/** Pairs of value and text, of numbers or of pairs; and the axis' name with what is taken off numbers that look alike. */
function labelled(ticks, format, name) {
  const show = (base) => ticks.map((tick) => (Array.isArray(tick) ? tick : [tick, format(tick - base)]));
  const pairs = show(0);
  const size = 10 ** Math.ceil(Math.log10(ticks.at(-1) - ticks[0]));
  if (!(size > 0) || new Set(pairs.map(([, text]) => text)).size === ticks.length) return [pairs, name];
  const base = Math.round(ticks[0] / size) * size;
  return [show(base), `${name} ${base < 0 ? "+" : "−"} ${Math.abs(base)}`];
}

/** A tick's text: as few digits as it needs. */
export function showTick(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-4)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e").replace(/-/g, "−");
  return String(Number(value.toPrecision(6))).replace("-", "−");
}
