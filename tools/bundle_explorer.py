"""Bundle the JavaScript of the explorer into `src/kernpool/explorer/page.js`, which is committed; needs npx.

    python tools/bundle_explorer.py

Python only reads that file, so that nobody needs Node.js to install, use or test the package. The first line of it has
the SHA-256 of its sources: a test says when they are newer.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

EXPLORER = Path(__file__).resolve().parent.parent / "src" / "kernpool" / "explorer"
BUNDLE = EXPLORER / "page.js"
ESBUILD = ["npx", "--yes", "esbuild@0.28.2"]


def header() -> str:
    """Return the first line of the bundle: the digest of the names and texts of its sources."""
    digest = hashlib.sha256()
    for path in sorted([*(EXPLORER / "js").iterdir(), *(EXPLORER / "words").iterdir()]):
        digest.update(f"{path.name}\n{path.read_text(encoding='utf-8')}".encode())
    return f"// {digest.hexdigest()} (SHA-256 of the sources; tools/bundle_explorer.py)"


def bundle(target: Path) -> None:
    """Write the bundle to a file."""
    options = ["--bundle", "--minify", "--format=esm", "--charset=utf8", "--loader:.css=text", "--log-level=warning"]
    source = EXPLORER / "js" / "index.js"
    subprocess.run([*ESBUILD, source, *options, f"--banner:js={header()}", f"--outfile={target}"], check=True)


if __name__ == "__main__":
    bundle(BUNDLE)
    sys.stdout.write(f"{BUNDLE.name}: {BUNDLE.stat().st_size / 1000:.0f} kB\n")
