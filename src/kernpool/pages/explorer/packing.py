"""The module as pages and notebooks carry it: compressed to a third, and imported by a loader of a few lines.

A minifier would be a second language's tool chain for every build, and its output hardly smaller: names go, and with
them what compression feeds on. Browsers decompress by themselves (`DecompressionStream`: Chromium 80, Safari 16.4,
Firefox 113).
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterable

from kernpool.pages.explorer.bundle import bundle

MODULES = ("main.js", "hosts.js")

LOADER = """\
async function load(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const url = URL.createObjectURL(new Blob([await new Response(stream).text()], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}"""


def packed_module(kernels: Iterable[str]) -> str:
    """Return the module as base64 of gzip, the same bytes for the same sources.

    Parameters
    ----------
    kernels : iterable of str
        Names of the kernels in its menu.

    Returns
    -------
    str
        What `LOADER`'s `load` takes.
    """
    text = bundle(MODULES, kernels)
    return b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode("ascii")


def widget_module(kernels: Iterable[str]) -> str:
    """Return the module of notebooks: what anywidget imports, and renders with."""
    return f"""{LOADER}
const module = load("{packed_module(kernels)}");
export default {{ render: async (context) => (await module).default.render(context) }};
"""
