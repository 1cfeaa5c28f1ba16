/** Gradient descent on w = 1/h, an epoch at a time: the loss falls, and the curve and the heat map follow. */
import { extent, linePath, linearScale, makeChart } from "./chart.js";
import { descend, lossAndSlope } from "./descent.js";
import { html, put } from "./dom.js";
import { titled } from "./panel.js";
import { sampleOf } from "./points.js";

const PACE = 350; // milliseconds between epochs
const SLOPED = 300; // rows
const TAUGHT = { start: 1, rate: 0.5, epochs: 50, loss: "mean" };

export function makeTraining(root, context) {
  const { store, words, payload } = context;
  titled(root, words("training.title"), words("training.note"));
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let timer = 0;

  const first = payload.samples ? TAUGHT : startFor(context.data()); // the rows of other pages stay
  const options = () => ({ ...first, ...store.get().training });
  const history = () => {
    const { widths = [], losses = [], lost = 0 } = store.get().training || {};
    return { widths, losses, lost };
  };
  /** Change an option, which begins again. */
  const option = (patch) => {
    pause();
    store.set({ training: { ...options(), widths: [], losses: [], lost: 0, ...patch } });
  };
  const number = (name, attributes) =>
    html("input", { type: "number", "data-option": name, ...attributes, onchange() {
      const value = Number(this.value);
      if (this.value !== "" && this.validity.valid && value > 0) option({ [name]: value });
      else this.value = options()[name];
    } });
  const inputs = { rate: number("rate", { min: 0, step: "any" }), start: number("start", { min: 0, step: "any" }), epochs: number("epochs", { min: 1, max: 1000, step: 1 }) };
  const loss = html("select", { "data-option": "loss", onchange: () => option({ loss: loss.value }) }, ...["mean", "sum"].map((kind) => html("option", { value: kind }, words("training." + kind))));
  const button = (key, onclick) => html("button", { type: "button", "data-action": key, onclick }, words("training." + key));
  const play = button("play", () => (timer ? pause() : run()));
  const label = (key, input) => html("label", {}, words("training." + key) + " ", input);
  const samples = makeSamples(context, () => { pause(); store.set({ training: null }); });
  if (samples) root.append(samples.element);
  root.append(
    html("div", { class: "kx-row" }, play, button("step", () => { pause(); step(1); }), button("reset", () => { pause(); begin(); }),
      label("rate", inputs.rate), label("start", inputs.start), label("epochs", inputs.epochs), label("loss", loss)),
  );
  const chart = makeChart(root, { height: 210, left: 68 }, () => show());
  const line = chart.layer("path", { class: "kx-line" });
  const dots = chart.layer("path", { class: "kx-dots" });
  const now = chart.layer("circle", { class: "kx-lowest", r: 5 }, chart.over);
  const readout = root.appendChild(html("p", { class: "kx-readout" }));
  const warning = root.appendChild(html("p", { class: "kx-warning", role: "status" }));

  /** Show the curve of a width; the training is taught with the Gaussian kernel and local constant fits. */
  const adopt = (training) => {
    const width = training.widths[training.widths.length - 1];
    store.set({ training, settings: { kernel: "gaussian", degree: 0, widths: "fixed", bandwidth: [1 / Math.abs(width)] } });
  };
  const begin = () => {
    const chosen = options();
    const { value } = descend(context.data(), { ...chosen, width: chosen.start, epochs: 0 }).next();
    adopt({ ...chosen, widths: [value.width], losses: [value.loss], lost: 0 });
  };
  /** So many epochs further; true while there are more. */
  const step = (count) => {
    if (!history().widths.length) begin();
    const chosen = options();
    const [widths, losses] = [chosen.widths.slice(), chosen.losses.slice()];
    const left = Math.min(count, chosen.epochs + 1 - widths.length);
    const steps = descend(context.data(), { ...chosen, width: widths[widths.length - 1], epochs: left });
    steps.next();
    for (const { width, loss } of steps) {
      if (!(Number.isFinite(width) && Number.isFinite(loss) && width !== 0)) {
        adopt({ ...chosen, widths, losses, lost: widths.length });
        return false;
      }
      widths.push(width);
      losses.push(loss);
    }
    adopt({ ...chosen, widths, losses, lost: 0 });
    return widths.length <= chosen.epochs;
  };
  const run = () => {
    if (history().widths.length > options().epochs) begin();
    if (still.matches) return step(Infinity);
    const next = () => {
      timer = step(1) ? setTimeout(next, PACE) : 0;
      if (!timer) show();
    };
    timer = setTimeout(next, history().widths.length ? 0 : PACE);
    if (!history().widths.length) begin();
    show();
  };
  const pause = () => {
    clearTimeout(timer);
    timer = 0;
    show();
  };

  const show = () => {
    const { widths, losses, lost } = history();
    const chosen = options();
    root.numbers = { widths, losses };
    put(play, "text", words(timer ? "training.pause" : "training.play"));
    for (const [name, input] of Object.entries(inputs)) if (Number(input.value) !== chosen[name]) input.value = chosen[name];
    loss.value = chosen.loss;
    const epochs = losses.map((_, epoch) => epoch);
    const [low, high] = losses.length ? extent([losses], 0.08) : [0, 1];
    chart.axes({
      x: linearScale([0, chosen.epochs], chart.xRange),
      y: linearScale([Math.max(0, low), high], chart.yRange),
      xLabel: words("training.epoch"),
      yLabel: words("training." + chosen.loss),
    });
    put(line, "d", linePath(epochs, losses, chart.x, chart.y));
    put(dots, "d", epochs.map((epoch) => `M${chart.x(epoch).toFixed(1)} ${chart.y(losses[epoch]).toFixed(1)}h0`).join(""));
    const last = losses.length - 1;
    put(now, "visibility", last < 0 ? "hidden" : null);
    if (last < 0) {
      put(readout, "text", words("training.idle", { epochs: chosen.epochs }));
      put(warning, "text", "");
      chart.label(words("training.idle", { epochs: chosen.epochs }));
      return;
    }
    put(now, "cx", chart.x(last));
    put(now, "cy", chart.y(losses[last]));
    const said = words("training.now", { epoch: last, epochs: chosen.epochs, loss: words.number(losses[last], 5), w: words.number(widths[last], 5), h: words.number(1 / Math.abs(widths[last]), 4) });
    put(readout, "text", said);
    const rose = losses.findIndex((value, epoch) => epoch > 0 && value > losses[epoch - 1] * (1 + 1e-12));
    const over = lost ? words("training.lost", { epoch: lost }) : rose > 0 ? words("training.overshoot." + chosen.loss, { epoch: rose, before: words.number(losses[rose - 1], 4), after: words.number(losses[rose], 4), n: context.data().n }) : "";
    put(warning, "text", over);
    chart.label(`${said} ${over}`);
  };

  return {
    update(changed) {
      const { kernel, degree, widths } = store.get().settings;
      if (timer && (kernel !== "gaussian" || degree || widths !== "fixed")) pause(); // somebody has chosen another fit
      if (changed.has("sample") && samples) samples.update();
      if (changed.has("training") || changed.has("sample") || changed.has("theme")) show();
    },
    destroy() {
      clearTimeout(timer);
      chart.destroy();
    },
  };
}

/** Menus of generators and seeds; nothing where the payload brings no samples. */
function makeSamples(context, onChange) {
  const { store, words, payload } = context;
  const samples = payload.samples || [];
  const generators = [...new Set(samples.map(({ generator }) => generator))];
  if (!generators.length) return null;
  const menu = (key) => html("select", { "data-option": key, onchange: choose });
  const offer = (input, values, chosen) =>
    input.replaceChildren(...values.map((value) => html("option", { value, selected: String(value) === String(chosen) }, String(value))));
  const seedsOf = (name) => samples.filter(({ generator }) => generator === name).map(({ seed }) => seed);
  const [generator, seed] = [menu("generator"), menu("seed")];
  function choose() {
    let at = samples.findIndex((sample) => sample.generator === generator.value && String(sample.seed) === seed.value);
    if (at < 0) at = samples.findIndex((sample) => sample.generator === generator.value);
    onChange();
    store.set({ sample: at });
  }
  const update = () => {
    const now = sampleOf(context);
    offer(generator, generators, now.generator);
    offer(seed, seedsOf(now.generator), now.seed);
  };
  update();
  const element = html("div", { class: "kx-row" }, html("label", {}, words("training.generator") + " ", generator), html("label", {}, words("training.seed") + " ", seed));
  return { element, update };
}

/**
 * What suits other data: a narrow start, since from a wide one the descent may end where all rows are averaged, and steps
 * that change w by a tenth where the loss is steep. Of many rows some tell how steep it is, here and at half of w, since
 * the start may be next to the minimum.
 */
function startFor(data) {
  const every = Math.ceil(data.n / SLOPED);
  const some = (values) => values.filter((_, i) => i % every === 0);
  const round = (value) => Number(value.toPrecision(2));
  const start = round(40 / (data.high[0] - data.low[0] || 1));
  const slopes = [0.5, 1].map((factor) => Math.abs(lossAndSlope(some(data.numeric[0]), some(data.centered[0]), factor * start).slope));
  return { ...TAUGHT, start, rate: round((0.1 * start) / (Math.max(...slopes) || 1)) };
}
