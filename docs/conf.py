"""The documentation as a site: `make docs` builds it offline, and a warning is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tools.write_reference import write_reference  # noqa: E402

project = "taskhint"
author = "taskhint developers"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "taskhint"
myst_heading_anchors = 3
# A site has no file outside docs/, such as ../results: a link to it becomes the name of the place.
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./([^)#\s]+)[^)\s]*\)")


def name_places(_app: object, _page: str, source: list[str]) -> None:
    source[0] = OUTSIDE.sub(r"\1 (`\2` in the repository)", source[0])


def setup(app: object) -> None:
    write_reference(HERE / "reference")
    app.connect("source-read", name_places)  # type: ignore[attr-defined]
