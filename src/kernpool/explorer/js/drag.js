/** Pointers on the main chart: over the plot they move the query or a point, in the strip at its foot they drag the bandwidth. */
import { STRIP } from "./marks.js";
import { addPoint, canEdit, movePoint } from "./points.js";
import { moveQuery, setBandwidth } from "./actions.js";

const NEAR = 9; // pixels from a point that is taken

/** @param {{isHeld: () => boolean, hold: () => void}} holding a click holds the query, so that the pointer can leave */
export function listenToPointer(chart, context, { isHeld, hold, taken }) {
  const { element } = chart;
  let dragged = null;
  let isNew = true; // of a point that is dragged: one drag is undone at once
  const place = (event) => {
    const box = chart.svg.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const inside = px >= chart.left && px <= chart.width - chart.right;
    const part = py < chart.base - STRIP && py >= chart.top ? "plot" : py >= chart.base - STRIP && py <= chart.base ? "strip" : "";
    const y = chart.y.invert(Math.min(chart.y.range[0], Math.max(chart.top, py)));
    const point = canEdit(context) && part === "plot" ? nearestPoint(chart, px, py) : null;
    return { value: chart.x.invert(px), y, point, part: inside ? part : "" };
  };
  const widen = (value) => {
    const { column, query } = context.store.get();
    setBandwidth(context, column, Math.abs(value - query.numeric[column]));
  };
  element.addEventListener("pointerdown", (event) => {
    const { value, part, point } = place(event);
    if (!part || event.button) return;
    event.preventDefault(); // what is selected would be dragged instead
    dragged = point === null ? part : "point";
    isNew = true;
    if (canEdit(context) && part === "plot") context.store.set({ picked: point });
    element.setPointerCapture(event.pointerId);
    if (part === "strip") widen(value);
    else if (dragged === "plot") moveQuery(context, value);
  });
  element.addEventListener("pointermove", (event) => {
    const { value, y, point, part } = place(event);
    element.dataset.over = dragged || (point === null ? part : "point");
    if (dragged === "point") {
      movePoint(context, [value, y], isNew);
      isNew = false;
    } else if (dragged === "strip") widen(value);
    else if (dragged === "plot" || (part === "plot" && event.pointerType !== "touch" && !isHeld())) moveQuery(context, value);
  });
  element.addEventListener("pointerup", () => {
    if (dragged === "plot") hold();
    if (dragged === "point") taken();
    dragged = null;
  });
  element.addEventListener("dblclick", (event) => {
    const { value, y, point, part } = place(event);
    if (!canEdit(context) || part !== "plot" || point !== null) return;
    addPoint(context, [value, y]);
    taken();
  });
  for (const name of ["pointercancel", "lostpointercapture"]) element.addEventListener(name, () => (dragged = null));
}

/** The row within reach of a pixel, or null. */
function nearestPoint({ px, py }, x, y) {
  let [best, least] = [null, NEAR];
  px.forEach((at, i) => {
    const far = Math.hypot(at - x, py[i] - y);
    if (far <= least) [best, least] = [i, far];
  });
  return best;
}
