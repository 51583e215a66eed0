"""Fills the tables of docs/performance.md from the results of `python -m benchmarks all --json`.

    python -m benchmarks.page results/bench.json docs/performance.md

The page's own words stay; what stands between `<!-- bench: NAME -->` and `<!-- end -->` is written
anew. The cost model is computed on the spot, so that it always speaks of the recipes as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.tables import TABLES, machine_line
from taskhint.system.files import read_json, write_atomically
from taskhint.training import cost

_PLACE = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, results: dict[str, Any]) -> str:
    known = results | {"cost": cost.measure()}
    return _PLACE.sub(lambda found: f"{found[1]}\n{_content(found[2], known)}\n{found[3]}", page)


def _content(name: str, results: dict[str, Any]) -> str:
    if name not in results:
        return "Not measured yet: run `make bench`.\n"
    if name == "machine":
        return machine_line(results[name]) + "\n"
    return "\n".join(table.as_markdown() for table in TABLES[name](results[name]))


def main(results: str, page: str) -> None:
    path = Path(page)
    measured = read_json(Path(results)) if Path(results).exists() else {}
    write_atomically(path, filled(path.read_text(), measured).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
