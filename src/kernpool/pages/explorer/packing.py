"""The module as pages and notebooks carry it: compressed to a third, and imported by a loader of a few lines.

A minifier would be a second language's tool chain for every build, and its output hardly smaller: names go, and with
them what compression feeds on. Browsers decompress by themselves (`DecompressionStream`: Chromium 80, Safari 16.4,
Firefox 113).
"""

from __future__ import annotations

import zlib
from base64 import b85encode
from collections.abc import Iterable

from kernpool.pages.explorer.bundle import bundle

MODULES = ("main.js", "hosts.js")
GZIP = 31  # what zlib calls its format

# Five letters for four bytes, where base64 has five and a third. The alphabet is that of RFC 1924 with a comma for the
# less-than sign, so that no tag begins in it.
LOADER = """\
function bytesOf(text) {
  const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  const digit = Object.fromEntries([...letters].map((letter, i) => [letter, i]));
  const padding = (5 - (text.length % 5)) % 5;
  const padded = text + "~".repeat(padding);
  const view = new DataView(new ArrayBuffer((padded.length / 5) * 4));
  for (let i = 0; i < padded.length; i += 5) {
    view.setUint32((i / 5) * 4, [...padded.slice(i, i + 5)].reduce((word, letter) => word * 85 + digit[letter], 0));
  }
  return new Uint8Array(view.buffer, 0, view.byteLength - padding);
}
async function load(packed) {
  const stream = new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const url = URL.createObjectURL(new Blob([await new Response(stream).text()], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}"""


def packed_module(kernels: Iterable[str]) -> str:
    """Return the module as base85 of gzip, the same bytes for the same sources.

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
    # With less memory zlib begins new blocks more often, and codes them better: 200 characters less.
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP, memLevel=6)
    packed = b85encode(packer.compress(text.encode()) + packer.flush())
    return packed.decode("ascii").replace("<", ",")


def widget_module(kernels: Iterable[str]) -> str:
    """Return the module of notebooks: what anywidget imports, and renders with."""
    return f"""{LOADER}
const module = load("{packed_module(kernels)}");
export default {{ render: async (context) => (await module).default.render(context) }};
"""
