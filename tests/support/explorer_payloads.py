"""What Python tells the page, for tests of the page's numbers; and arrays that come back."""

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


def payload_of_arrays(x, y, weight=None, levels=(), classes=None):
    """Return a payload of numeric columns and of categorical ones: (codes, number of levels, kernel, places)."""
    columns = [
        {"name": f"x{a}", "kind": "numeric", "values": packed(column)} for a, column in enumerate(np.asarray(x).T)
    ]
    for codes, count, kernel, places in levels:
        columns.append(
            {
                "name": f"z{len(columns)}",
                "kind": "unordered" if places is None else "ordered",
                "levels": [str(level) for level in range(count)],
                "codes": packed(codes),
                "kernel": kernel,
                "largest": 1.0,
                "places": None if places is None else list(map(float, places)),
            }
        )
    target = (
        {"name": "y", "values": packed(y)} if classes is None else {"name": "y", "classes": classes, "codes": packed(y)}
    )
    return {
        "version": 1,
        "task": "regression" if classes is None else "classification",
        "columns": columns,
        "target": target,
        "weight": None if weight is None else packed(np.asarray(weight, dtype=float)),
        "truth": None,
    }


def settings(kernel, bandwidth, degree=0, composition="radial", smoothing=(), **more):
    return {
        "kernel": kernel,
        "bandwidth": list(np.atleast_1d(bandwidth).astype(float)),
        "composition": composition,
        "degree": degree,
        "smoothing": list(smoothing),
        **more,
    }
