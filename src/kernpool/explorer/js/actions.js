/** User actions on the state: move the query, change a bandwidth, pin. Charts, controls and keys all call these. */

import { isNearest, keysWithin, neighborRange } from "./widths.js";

/** Ends of the axis of a numeric column: a little more than its keys, on a circle once round. */
export function domainOf(data, column) {
  const [low, high] = [data.low[column], data.high[column]], rest = (data.periods[column] ?? 0) - (high - low);
  const margin = rest > 0 ? rest / 2 : 0.04 * (high - low || Math.abs(low) || 1);
  return [low - margin, high + margin];
}

/** Move the query along the column that is drawn, not beyond the axis. */
export function moveQuery({ store, data }, place) {
  const { column, query } = store.get();
  const [low, high] = domainOf(data(), column);
  const numeric = query.numeric.slice();
  numeric[column] = data().pairs[column] ? Number(place > 0.5) : Math.min(high, Math.max(low, place));
  store.set({ query: { numeric } });
}

/** Ends of a bandwidth's slider: from a thousandth to four times the range of the column, and what the model has. */
export function bandwidthRange({ data, payload }, column) {
  const range = data().high[column] - data().low[column] || 1;
  const known = [payload.settings, payload.fitted].map((one) => one && one.bandwidth[column]).filter((h) => h > 0 && h < 1e6 * range);
  return [Math.min(range / 1000, ...known), Math.max(4 * range, ...known)];
}

/** Set the bandwidth of a column, within the ends of its slider; of windows to the nearest keys how many are so near. */
export function setBandwidth(context, column, h) {
  const { settings, query } = context.store.get();
  if (isNearest(settings)) return setNeighbors(context, keysWithin(context.data(), query.numeric[0], h));
  const [low, high] = bandwidthRange(context, column);
  const bandwidth = settings.bandwidth.slice();
  bandwidth[column] = Number(Math.min(high, Math.max(low, h)).toPrecision(4));
  context.store.set({ settings: { bandwidth } });
}

/** Set to how many keys windows reach, as far as that is possible. */
export function setNeighbors({ store, data }, k) {
  const [least, most] = neighborRange(data(), store.get().settings);
  store.set({ settings: { neighbors: Math.round(Math.min(most, Math.max(least, k))) } });
}

/** Choose the widths of windows; at first they reach to as many keys as the bandwidth does at the query. */
export function setWidths(context, widths) {
  const { settings, query } = context.store.get();
  if (widths === "nearest") setNeighbors(context, settings.neighbors ?? keysWithin(context.data(), query.numeric[0], settings.bandwidth[0]));
  context.store.set({ settings: { widths } });
}

/** Keep the query beside the current one; of more than two the older goes. */
export function pinQuery({ store }) {
  const { pins, query } = store.get();
  const one = { numeric: query.numeric.slice(), codes: query.codes.slice() };
  store.set({ pins: pins.length < 2 ? [...pins, one] : [pins[1], one] });
}
