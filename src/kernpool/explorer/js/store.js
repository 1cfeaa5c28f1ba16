/** State that charts, controls and hosts share: set() merges a patch and calls those who asked for what changed. */

/**
 * @param {object} start {settings, column, query, pins, sample, language, theme, panels, training, band, lesson, rows, picked, draws}
 * @returns {{get: () => object, set: (patch: object) => void, subscribe: (fn: Function, keys?: string[]) => Function}}
 */
export function makeStore(start) {
  let state = start;
  const listeners = new Set();
  const equal = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);
  return {
    get: () => state,
    // `settings` and `query` are merged one level deep, so that a control names only what it changes. What stays equal
    // keeps its object: pools and panels are remembered by identity.
    set(patch) {
      const next = { ...state };
      const changed = new Set();
      for (const key of Object.keys(patch)) {
        const merged = (key === "settings" || key === "query") && state[key] && patch[key];
        const value = merged ? { ...state[key], ...patch[key] } : patch[key];
        if (equal(value, state[key])) continue;
        next[key] = value;
        changed.add(key);
      }
      if (!changed.size) return;
      state = next;
      for (const { fn, keys } of [...listeners]) if (!keys || keys.some((key) => changed.has(key))) fn(state, changed);
    },
    subscribe(fn, keys) {
      const listener = { fn, keys };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
