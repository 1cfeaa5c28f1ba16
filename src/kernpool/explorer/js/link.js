/** The state as the hash of a link, and back; what does not fit the data is left out. */
import { axesOf } from "./data.js";
import { canBeNearest, isNearest } from "./widths.js";

const MARK = "kernpool?";

/** @returns {string} a hash without "#" */
export function toHash(state) {
  const { kernel, degree, composition, bandwidth, smoothing } = state.settings;
  const entries = { kernel, degree, composition, h: bandwidth.join(), column: state.column, query: place(state.query), theme: state.theme, lang: state.language };
  if (isNearest(state.settings)) Object.assign(entries, { widths: "nearest", neighbors: state.settings.neighbors });
  if (smoothing && smoothing.length) entries.smoothing = smoothing.join();
  // Empty ones are written too: a link to a view without pins takes away those that are there.
  entries.pins = state.pins.map(place).join(";");
  entries.sample = state.sample ?? "";
  return MARK + new URLSearchParams(entries).toString().replace(/%2C/g, ",").replace(/%3B/g, ";");
}

/** @returns {object} a patch of the state, empty for a hash of something else */
export function fromHash(hash, payload, data) {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith(MARK)) return {};
  const found = new URLSearchParams(text.slice(MARK.length));
  const columns = data.numeric.length;
  const among = (name, all) => all.find((one) => String(one) === found.get(name));
  const h = numbers(found.get("h"), columns, (one) => one > 0);
  const smoothing = numbers(found.get("smoothing"), data.categorical.length, (one, b) => one >= 0 && one <= data.categorical[b].largest);
  const query = unplace(found.get("query"), data);
  const pins = (found.get("pins") || "").split(";").map((one) => unplace(one, data)).filter(Boolean);
  const [neighbors] = numbers(found.get("neighbors"), 1, (one) => Number.isInteger(one) && one > 0) ?? [];
  const nearest = neighbors && found.get("widths") === "nearest" && canBeNearest(data, payload) ? { widths: "nearest", neighbors } : {};
  const settings = defined({
    ...nearest,
    kernel: among("kernel", payload.kernels),
    degree: data.classes || data.pairs.some(Boolean) ? undefined : among("degree", [0, 1]),
    composition: data.comesRound ? undefined : among("composition", ["radial", "product"]),
    bandwidth: h,
    smoothing: data.categorical.length ? smoothing : undefined,
  });
  return defined({
    settings: Object.keys(settings).length ? { ...payload.settings, ...settings } : undefined,
    column: among("column", axesOf(data)),
    query,
    pins: pins.length || found.get("pins") === "" ? pins.slice(0, 2) : undefined,
    sample: found.get("sample") === "" ? null : among("sample", (payload.samples || []).map((_, i) => i)),
    theme: among("theme", ["auto", "light", "dark"]),
    language: among("lang", ["en", "zh"]),
  });
}

/**
 * Keep the state in the address, and take it from there when somebody changes the address.
 * @returns {() => void} ends it
 */
export function followHash(store, read) {
  let timer = 0;
  let known = location.hash;
  const save = () => {
    timer = 0;
    // Somebody has changed the address, of which this page hears next. One of something else, such as a heading, stays.
    if (location.hash !== known || (known && !known.startsWith("#" + MARK))) return;
    try {
      history.replaceState(null, "", "#" + toHash(store.get()));
      known = location.hash;
    } catch {
      // A page in a frame may not be allowed to. The link can still be copied.
    }
  };
  const hear = () => store.set(read((known = location.hash)));
  const stop = store.subscribe(() => (timer = timer || setTimeout(save, 500)));
  window.addEventListener("hashchange", hear);
  return () => {
    clearTimeout(timer);
    stop();
    window.removeEventListener("hashchange", hear);
  };
}

function place({ numeric, codes }) {
  return [...numeric, ...codes].join();
}

function unplace(text, data) {
  const [a, b] = [data.numeric.length, data.categorical.length];
  const all = numbers(text, a + b, (one, k) => (k < a ? !data.pairs[k] || one === 0 || one === 1 : Number.isInteger(one) && one >= -1 && one < data.categorical[k - a].levels.length));
  return all && { numeric: all.slice(0, a), codes: all.slice(a) };
}

/** So many finite numbers that pass a test, or undefined. */
function numbers(text, count, test) {
  const all = (text || "").split(",").map((one) => (one.trim() === "" ? NaN : Number(one)));
  return all.length === count && all.every((one, k) => Number.isFinite(one) && test(one, k)) ? all : undefined;
}

function defined(entries) {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}
