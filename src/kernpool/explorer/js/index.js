/** What pages import; tools/bundle_explorer.py makes ../page.js of it. */
export { mount } from "./main.js";

// The numbers alone, which tests compare with those of Python.
export { bandAlong } from "./band.js";
export { makeQuickPool } from "./binned.js";
export { pack, readData, unpack } from "./data.js";
export { descend } from "./descent.js";
export { exponential } from "./exponential.js";
export { FACTORS, KERNELS } from "./kernels.js";
export { leftOut } from "./leave_one_out.js";
export { makePool } from "./pool.js";
export { addKernels } from "./tabulated_kernels.js";
