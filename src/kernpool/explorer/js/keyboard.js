/** Keys while the focus is in the explorer: single letters elsewhere are the page's, and a reader's by voice. */
import { canEdit, removePoint } from "./points.js";
import { domainOf, moveQuery, pinQuery, setBandwidth, setNeighbors } from "./actions.js";
import { isNearest, neighborsOf } from "./widths.js";

/** @returns {() => void} stops listening */
export function listenToKeys(context) {
  const { el, store, data } = context;
  const along = (share) => {
    const { column, query } = store.get();
    const [low, high] = domainOf(data(), column);
    moveQuery(context, query.numeric[column] + share * (high - low));
  };
  const widen = (factor) => {
    const { column, settings } = store.get();
    if (!isNearest(settings)) return setBandwidth(context, column, settings.bandwidth[column] * factor);
    const k = neighborsOf(data(), settings);
    setNeighbors(context, factor > 1 ? Math.max(k + 1, k * factor) : Math.min(k - 1, k * factor));
  };
  const keys = {
    p: () => pinQuery(context),
    Escape: () => store.set({ pins: [] }),
    ...(canEdit(context) ? { Delete: () => removePoint(context), Backspace: () => removePoint(context) } : {}),
    "[": () => widen(1 / 1.1),
    "]": () => widen(1.1),
  };
  const arrows = { ArrowLeft: -0.005, ArrowRight: 0.005 };
  const onKey = (event) => {
    const focus = event.composedPath()[0];
    if (!el.contains(focus) || event.ctrlKey || event.metaKey || event.altKey || (focus.closest && focus.closest("dialog, textarea"))) return;
    const typing = /^(INPUT|SELECT)$/.test(focus.tagName);
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // Sliders and selects have arrows of their own; selects take letters too.
    if (key in arrows && !typing) along(arrows[key] * (event.shiftKey ? 10 : 1));
    else if (key in keys && focus.tagName !== "SELECT" && focus.type !== "number" && focus.type !== "text") keys[key]();
    else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
