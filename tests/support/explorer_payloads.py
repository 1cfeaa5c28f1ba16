"""The functions of the page, and arrays on their way to it and back."""

from base64 import b64decode, b64encode

import numpy as np

from kernpool.explorer.explorer_model import BUNDLE

IMPORT = """async (text) => {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  Object.assign(window, await import(url));
}"""


def import_bundle(page):
    """Make what `page.js` exports known to `page.evaluate`."""
    page.evaluate(IMPORT, BUNDLE.read_text(encoding="utf-8"))


def packed(array):
    array = np.asarray(array)
    name, kind = ("f64", "<f8") if array.dtype.kind == "f" else ("i32", "<i4")
    return {name: b64encode(array.astype(kind).tobytes()).decode("ascii")}


def unpacked(reply, *shape):
    array = np.frombuffer(b64decode(reply.get("f64", reply.get("i32"))), "<f8" if "f64" in reply else "<i4")
    return array.reshape(shape) if shape else array
