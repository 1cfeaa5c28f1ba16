/** Elements of the main chart: rows as dots, weights as discs, and the kernel with the handle of the bandwidth. */
import { domainOf } from "./actions.js";
import { chord } from "./circle.js";
import { KERNELS } from "./kernels.js";
import { put } from "./dom.js";

/** Rows from which on points are painted on a canvas: a path of more is slow to draw. */
export const PATH_ROWS = 2000;
/** Height of the strip in which the bump is drawn and the bandwidth dragged. */
export const STRIP = 58;
const DISC = 30; // radius of weight 1; areas add up to the same whatever the kernel, while the largest disc can be seen

/** Dots of the rows at chart.px, chart.py; a path for each class, or one. */
export function drawPoints(chart, paths, classOf) {
  const { px, py } = chart;
  const n = px.length;
  const size = dotSize(n);
  const pen = chart.paint();
  if (n > PATH_ROWS) {
    paths.forEach((path, k) => {
      put(path, "d", null);
      pen.fillStyle = getComputedStyle(path).stroke;
      pen.globalAlpha = n > 20000 ? 0.25 : 0.5;
      for (let i = 0; i < n; i++) if (classOf(i) === k) pen.fillRect(px[i] - size / 2, py[i] - size / 2, size, size);
    });
    return;
  }
  const dots = paths.map(() => "");
  for (let i = 0; i < n; i++) dots[classOf(i)] += `M${short(px[i])} ${short(py[i])}h.01`;
  paths.forEach((path, k) => {
    put(path, "d", dots[k]);
    put(path, "stroke-width", size);
  });
}

function dotSize(n) {
  return n <= 150 ? 6 : n <= 600 ? 5 : n <= PATH_ROWS ? 3.6 : 2.2;
}

/** The radius of weight 1, so large that the largest disc is wider than a dot: wide windows have small weights. */
function scaleOf(weight) {
  let largest = 0;
  for (let i = 0; i < weight.length; i++) largest = Math.max(largest, weight[i]);
  return largest > 0 ? Math.max(DISC, dotSize(weight.length) / Math.sqrt(largest)) : DISC;
}

/** Discs whose areas are the weights, as a path. */
export function discsOf({ px, py }, weight) {
  const scale = scaleOf(weight);
  let discs = "";
  for (let i = 0; i < weight.length; i++) {
    const r = scale * Math.sqrt(weight[i]);
    if (r < 0.4) continue;
    const [s, x, y] = [short(r), short(px[i] - r), short(py[i])];
    discs += `M${x} ${y}a${s} ${s} 0 1 0 ${short(2 * r)} 0a${s} ${s} 0 1 0 ${-short(2 * r)} 0`;
  }
  return discs || null;
}

/** The same of the query; of many rows on a canvas. */
export function drawWeights(chart, canvas, path, weight) {
  const { px, py } = chart;
  if (weight.length <= PATH_ROWS) return put(path, "d", discsOf(chart, weight));
  put(path, "d", null);
  const pen = chart.paint(canvas);
  const scale = scaleOf(weight);
  pen.beginPath();
  for (let i = 0; i < weight.length; i++) {
    const r = scale * Math.sqrt(weight[i]);
    if (r < 0.4) continue;
    pen.moveTo(px[i] + r, py[i]);
    pen.arc(px[i], py[i], r, 0, 7);
  }
  pen.fillStyle = pen.strokeStyle = chart.tint;
  pen.globalAlpha = 0.3;
  pen.fill();
  pen.globalAlpha = 1;
  pen.stroke();
}

/** The kernel around the query at the foot of the chart, and the grip at one bandwidth from it. */
export function drawBump(chart, { bump, grip, label }, settings, data, column, q, text) {
  const { x, base, left, width } = chart;
  const { profile, support } = KERNELS[settings.kernel];
  const h = settings.bandwidth[column];
  const right = width - chart.right;
  const far = Math.min(support, 4);
  const top = profile(0);
  const period = data.periods[column];
  const [from, to] = period ? domainOf(data, column) : [q - far * h, q + far * h];
  let path = "";
  for (let k = 0; k <= 120; k++) {
    const at = from + (k / 120) * (to - from), u = period ? Math.abs(chord(q, at, period)) / h : (Math.abs(k - 60) / 60) * far;
    const up = u <= support ? (STRIP - 16) * (profile(u) / top) : 0;
    path += `${path ? "L" : "M"}${short(clamp(x(at), -9e3, 9e3))} ${short(base - up)}`;
  }
  put(bump, "d", `${path}V${base}H${short(clamp(x(from), -9e3, 9e3))}Z`);
  const one = x(q + h) <= right || x(q - h) < left ? x(q + h) : x(q - h);
  const at = clamp(one, left + 2, right - 2);
  const y = base - 14;
  put(grip, "d", `M${short(x(q))} ${y}H${short(at)}M${short(at)} ${y - 8}v16`);
  const before = at > right - 10 * text.length;
  put(label, "x", short(before ? at - 8 : at + 8));
  put(label, "y", base - STRIP + 13); // above the kernel, whose outline would cross it
  put(label, "text-anchor", before ? "end" : "start");
  put(label, "text", text);
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

function short(value) {
  return Math.round(value * 10) / 10;
}
