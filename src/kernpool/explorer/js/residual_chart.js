/** Leave-one-out residuals against the prediction or the column; a click makes a row's place the query. */
import { extent, linearScale, makeChart } from "./chart.js";
import { axisName, ticksOf } from "./dates.js";
import { html, put } from "./dom.js";
import { leftOut } from "./leave_one_out.js";
import { gradually, makeHandle, titled, tone, within } from "./panel.js";

const PAINTED = 2000; // rows from which on dots are painted instead of being a path

export function makeResidualChart(root, context) {
  const { store, words } = context;
  titled(root, words("residuals.title"), words("residuals.note"));
  const against = html("select", { onchange: () => show() }, html("option", { value: "fit" }, words("residuals.fit")), html("option", { value: "x" }));
  root.append(html("label", { class: "kx-row" }, words("residuals.against"), against));
  const chart = makeChart(root, { height: 230, left: 58 }, () => show());
  const zero = chart.layer("path", { class: "kx-zero" });
  const points = chart.layer("path", { class: "kx-points" });
  const lit = chart.layer("circle", { class: "kx-lowest", r: 6 }, chart.over);
  const readout = root.appendChild(html("p", { class: "kx-readout" }));
  let found = null;
  let made = null;
  let places = null;
  let order = null;
  let row = -1;
  let stop = () => {};

  const choose = (i) => {
    const data = context.data();
    row = i;
    store.set({ query: { numeric: data.numeric.map((column) => column[i]), codes: data.categorical.map(({ codes }) => codes[i]) } });
    light();
  };
  const handle = makeHandle(chart, {
    label: words("residuals.handle"),
    /** The nearest row, in pixels. */
    move(at) {
      const data = context.data();
      let least = Infinity;
      let nearest = 0;
      for (let i = 0; i < data.n; i++) {
        const distance = Math.hypot(chart.x(places[i]) - chart.x(at[0]), chart.y(found.residual[i]) - chart.y(at[1]));
        if (distance < least) [least, nearest] = [distance, i];
      }
      choose(nearest);
    },
    step: (steps) => choose(order[within(order.indexOf(row) + steps, 0, order.length - 1)]),
  });
  handle.element.classList.add("kx-point");

  const show = () => {
    if (!found) return;
    const data = context.data();
    const { column } = store.get();
    const { value, residual, empty } = found;
    const isFit = against.value === "fit";
    const name = isFit ? words("residuals.fit") : axisName(data, column);
    places = isFit ? value : data.numeric[column];
    order = Int32Array.from(places, (_, i) => i).sort((i, j) => places[i] - places[j]);
    const [low, high] = extent([residual], 0.06);
    const most = Math.max(-low, high);
    const x = linearScale(extent([places], 0.03), chart.xRange);
    chart.axes({
      x,
      xTicks: isFit ? null : ticksOf(data, column, x, chart.inner),
      y: linearScale([-most, most], chart.yRange),
      xLabel: name,
      yLabel: words("residuals.axis"),
    });
    put(zero, "d", `M${chart.xRange[0]} ${chart.y(0)}H${chart.xRange[1]}`);
    drawDots(chart, points, places, residual, tone(root, "--kp-rows"));
    let square = 0;
    let total = 0;
    residual.forEach((one, i) => {
      const times = data.weight ? data.weight[i] : 1;
      square += times * one * one;
      total += times;
    });
    const text = words("residuals.label", { n: data.n, against: name, root: words.number(Math.sqrt(square / total)), largest: words.number(Math.max(...residual.map(Math.abs))) });
    chart.label(text + (empty ? " " + words("residuals.empty", { count: empty }) : ""));
    light();
  };

  /** Ring the row whose place is the query. */
  const light = () => {
    if (!found) return;
    const data = context.data();
    const { query } = store.get();
    const here = (i) => data.numeric.every((column, a) => column[i] === query.numeric[a]) && data.categorical.every(({ codes }, b) => codes[i] === query.codes[b]);
    if (row < 0 || row >= data.n || !here(row)) row = order.findIndex(here) < 0 ? -1 : order[order.findIndex(here)];
    put(lit, "visibility", row < 0 ? "hidden" : null);
    const text = row < 0 ? chart.svg.getAttribute("aria-label") : words("residuals.row", { row, name: data.names[store.get().column], x: words.number(data.numeric[store.get().column][row]), residual: words.number(found.residual[row]) });
    if (row >= 0) {
      put(lit, "cx", chart.x(places[row]));
      put(lit, "cy", chart.y(found.residual[row]));
    }
    put(readout, "text", text);
    handle.place({ low: 1, high: data.n, now: row < 0 ? 1 : order.indexOf(row) + 1, text });
  };

  return {
    update(changed) {
      const data = context.data();
      put(against.options[1], "text", data.names[store.get().column]);
      const key = [data, store.get().settings];
      if (!made || key.some((part, i) => part !== made[i])) {
        made = key;
        stop();
        if (!found) put(readout, "text", words("computing"));
        stop = gradually(context, root, leftOut(context.pool(), data), (now) => {
          found = now;
          root.numbers = now;
          show();
        });
      } else if (changed.has("column") || changed.has("theme")) show();
      else light();
    },
    destroy() {
      stop();
      chart.destroy();
    },
  };
}

/** Dots as a path; very many on the canvas, where their density shows. */
function drawDots(chart, path, xs, ys, colour) {
  const pen = chart.paint();
  let d = "";
  if (xs.length <= PAINTED) for (let i = 0; i < xs.length; i++) d += `M${chart.x(xs[i]).toFixed(1)} ${chart.y(ys[i]).toFixed(1)}h0`;
  put(path, "d", d);
  if (d) return;
  pen.fillStyle = colour;
  pen.globalAlpha = 0.45;
  for (let i = 0; i < xs.length; i++) pen.fillRect(chart.x(xs[i]) - 1, chart.y(ys[i]) - 1, 2, 2);
  pen.globalAlpha = 1;
}
