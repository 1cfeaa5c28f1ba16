/** What the linked panels share: headings, long work in idle slices, and charts that are dragged and typed on. */
import { html, put } from "./dom.js";

/** Put a heading and the chart's explanation into a section, which they name and describe. */
export function titled(root, title, note) {
  const id = "kx-title-" + ++titles;
  root.setAttribute("aria-labelledby", id);
  root.append(html("h2", { id }, title), html("p", { class: "kp-hint" }, note));
}

let titles = Math.floor(1e9 * Math.random()); // a document may hold the module more than once

/** Run a generator when the browser is idle, some milliseconds at a time; the function returned stops it. */
export function gradually(context, root, steps, done) {
  put(root, "aria-busy", "true");
  return context.idle(() => {
    const end = performance.now() + 6;
    for (;;) {
      const step = steps.next();
      if (step.done) {
        put(root, "aria-busy", "false");
        done(step.value);
        return false;
      }
      if (performance.now() > end) return true;
    }
  });
}

/**
 * Lay a slider over the plot of a chart: drag, click, or arrow keys (Page Up and Down: ten steps; Home and End).
 * A picture must not have parts that take the focus, so that the slider lies beside it.
 * @param {{label: string, vertical?: boolean, move: (at: number[]) => void, step: (steps: number) => void}} options
 */
export function makeHandle(chart, { label, vertical = false, move, step }) {
  const slider = html("div", {
    class: "kx-handle" + (vertical ? " kx-vertical" : ""),
    role: "slider",
    tabindex: 0,
    "aria-label": label,
    "aria-orientation": vertical ? "vertical" : "horizontal",
    onpointerdown(event) {
      slider.setPointerCapture(event.pointerId);
      move(chart.at(event));
    },
    onpointermove(event) {
      if (slider.hasPointerCapture(event.pointerId)) move(chart.at(event));
    },
    onkeydown(event) {
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: vertical ? -1 : 1, ArrowDown: vertical ? 1 : -1, PageUp: vertical ? -10 : 10, PageDown: vertical ? 10 : -10, Home: -Infinity, End: Infinity }[event.key];
      if (steps === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      step(steps);
    },
  });
  chart.element.append(slider);
  return {
    element: slider,
    /** Lie over the plot as it is now, and say the value. */
    place({ low, high, now, text, called = label }) {
      const [left, right] = chart.xRange;
      const [base, top] = chart.yRange;
      put(slider, "style", `left:${left}px;top:${top}px;width:${right - left}px;height:${base - top}px`);
      for (const [name, value] of Object.entries({ valuemin: low, valuemax: high, valuenow: now, valuetext: text, label: called })) put(slider, "aria-" + name, value);
    },
  };
}

/** The value of a custom property of the style, for canvases. */
export function tone(element, name) {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** A query whose value in one numeric column is replaced. */
export function queryAt(query, column, value) {
  return { ...query, numeric: query.numeric.map((old, a) => (a === column ? value : old)) };
}

/** Evenly spaced places. */
export function spaced(low, high, count) {
  return Float64Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));
}

/** Keep a number between two others. */
export function within(value, low, high) {
  return Math.min(high, Math.max(low, value));
}
