"""The directive ``embed``: a page that the build makes by running the content, shown in a frame.

.. code-block:: markdown

    ```{embed} explorer-engel
    :title: The explorer

    explore(model).save(folder / "index.html")
    ```

The code is given an empty `folder` and leaves an ``index.html`` in it that needs nothing from elsewhere. What it needs
to run again is a change of the code or of the package.
"""

from __future__ import annotations

import shutil
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from site_cache import made
from sphinx.util.docutils import SphinxDirective


class Embed(SphinxDirective):
    """Run the content, keep the page that it makes, and show it."""

    has_content = True
    required_arguments = 1
    option_spec = {  # noqa: RUF012  # as docutils has it
        "title": directives.unchanged_required,
        "height": directives.nonnegative_int,
        "open": directives.unchanged_required,
        "show": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the frame, with a link to the page on its own, and behind the code where `show` asks for it."""
        name, code = self.arguments[0], "\n".join(self.content)
        if "title" not in self.options:
            raise self.error("embed needs a :title: for those who cannot see the frame")

        def make(folder: Path) -> None:
            exec(compile(code, f"{self.env.docname}: {name}", "exec"), {"folder": folder, "__name__": "embed"})
            if not (folder / "index.html").is_file():
                raise self.error(f"the code of {name!r} has to leave an index.html in `folder`")

        built = Path(self.env.app.outdir) / "embedded" / name
        if built.exists():
            shutil.rmtree(built)
        shutil.copytree(made(f"embedded-{name}", code, make), built)
        page = "../" * self.env.docname.count("/") + f"embedded/{name}/index.html"
        title = escape(self.options["title"])
        frame = (
            f'<figure class="embedded"><iframe src="{page}" title="{title}" loading="lazy" '
            f'style="height: {self.options.get("height", 720)}px"></iframe><figcaption><a href="{page}">'
            f"{escape(self.options.get('open', 'Open on a page of its own'))}</a></figcaption></figure>"
        )
        shown: list[nodes.Node] = []
        if "show" in self.options:
            shown.append(nodes.literal_block(code, code, language="python"))
        return [*shown, nodes.raw("", frame, format="html")]


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("embed", Embed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
