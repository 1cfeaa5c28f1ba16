/** Pointers on the main chart: over the plot they move the query, in the strip at its foot they drag the bandwidth. */
import { STRIP } from "./marks.js";
import { moveQuery, setBandwidth } from "./actions.js";

/** @param {{isHeld: () => boolean, hold: () => void}} holding a click holds the query, so that the pointer can leave */
export function listenToPointer(chart, context, { isHeld, hold }) {
  const { element } = chart;
  let dragged = null;
  const place = (event) => {
    const box = chart.svg.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const inside = px >= chart.left && px <= chart.width - chart.right;
    const part = py < chart.base - STRIP && py >= chart.top ? "plot" : py >= chart.base - STRIP && py <= chart.base ? "strip" : "";
    return { value: chart.x.invert(px), part: inside ? part : "" };
  };
  const widen = (value) => {
    const { column, query } = context.store.get();
    setBandwidth(context, column, Math.abs(value - query.numeric[column]));
  };
  element.addEventListener("pointerdown", (event) => {
    const { value, part } = place(event);
    if (!part || event.button) return;
    event.preventDefault(); // what is selected would be dragged instead
    dragged = part;
    element.setPointerCapture(event.pointerId);
    if (part === "strip") widen(value);
    else moveQuery(context, value);
  });
  element.addEventListener("pointermove", (event) => {
    const { value, part } = place(event);
    element.dataset.over = dragged || part;
    if (dragged === "strip") widen(value);
    else if (dragged === "plot" || (part === "plot" && event.pointerType !== "touch" && !isHeld())) moveQuery(context, value);
  });
  element.addEventListener("pointerup", () => {
    if (dragged === "plot") hold();
    dragged = null;
  });
  for (const name of ["pointercancel", "lostpointercapture"]) element.addEventListener(name, () => (dragged = null));
}
