"""The page: one HTML file with rows, program and styles in it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from kernpool.pages.explorer.packing import LOADER, packed_module

# Nothing may be loaded: whatever a page would ask a network for, the browser refuses.
POLICY = "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:"


def render_page(payload: dict[str, Any], *, host: str = "pageHost()", policy: str = POLICY) -> str:
    """Return the page of a payload.

    Parameters
    ----------
    payload : dict
        As `payload_of` returns.
    host : str
        JavaScript that makes the host of the module: `pageHost()`, or that of a server.
    policy : str
        Content security policy.

    Returns
    -------
    str
        HTML.
    """
    language = {"zh": "zh-Hans"}.get(payload["language"] or "en", "en")
    return f"""<!doctype html>
<html lang="{language}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="kernpool explorer"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(payload["title"])}</title>
<link rel="icon" href="data:,">
<style>body{{margin:0}}</style></head>
<body><main id="explorer"></main>
<script type="application/json" id="payload">{json_for_html(payload)}</script>
<script type="module">
{LOADER}
const explorer = await load("{packed_module(payload["kernels"])}");
const payload = JSON.parse(document.getElementById("payload").text);
explorer.mount(document.getElementById("explorer"), payload, explorer.{host});
</script></body></html>
"""


def json_for_html(value: Any) -> str:
    r"""Return JSON that ends no script element, whatever names and labels hold.

    Examples
    --------
    >>> print(json_for_html({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
