// Kernels of one's own, by tables that Python makes (explorer/explorer_model.py) of their profiles.

import { unpack } from "./data.js";
import { bounded, KERNELS, unbounded } from "./kernels.js";

// Of the polynomial through eight equally spaced values, in its barycentric form.
const COEFFICIENTS = [1, -7, 21, -35, 35, -21, 7, -1];

function interpolate(values, place) {
  const first = Math.min(Math.max(Math.floor(place) - 3, 0), values.length - COEFFICIENTS.length);
  let above = 0, below = 0;
  for (let k = 0; k < COEFFICIENTS.length; k++) {
    const gap = place - first - k;
    if (gap === 0) return values[first + k];
    above += (COEFFICIENTS[k] / gap) * values[first + k];
    below += COEFFICIENTS[k] / gap;
  }
  return above / below;
}

/** Add kernels to those of the page: of a bounded one profiles at steps of u, of others logarithms at steps of log u. */
export function addKernels(tables) {
  for (const { name, support, start, step, values: packed } of tables) {
    const values = unpack(packed), at = (x, beyond) => {
      const place = Math.max((x - start) / step, 0);
      return place > values.length - 1 ? beyond : interpolate(values, place);
    };
    KERNELS[name] = support === null ? unbounded((u) => at(Math.log(u), -Infinity)) : bounded(support, (u) => Math.max(at(u, 0), 0));
  }
}
