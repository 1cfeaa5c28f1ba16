"""Write what the sessions print now."""

import warnings

from tests.public.printed import FILES, session

with warnings.catch_warnings(action="ignore"):
    for path in FILES:
        path.write_text(session(path), encoding="utf-8")
