"""The code of an exported model as one file that needs torch and transformers alone."""

from __future__ import annotations

import ast
from pathlib import Path

PARTS = ("schemes_taskhint.py", "configuration_taskhint.py", "modeling_taskhint.py")
HEAD = '''"""A taskhint model in transformers: a decoder with a head per task.

`taskhint export --format transformers` wrote this file; it needs torch and transformers alone.

Shapes: B examples, A new tokens (queries), T tokens so far (keys), D width, H heads, K head width.
"""

from __future__ import annotations

'''


def one_file() -> str:
    """The parts one after another, with the imports of all of them at the top."""
    imports: set[str] = set()
    bodies = []
    for name in PARTS:
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        found = [node for node in ast.parse(text).body if isinstance(node, _IMPORTS)]
        imports |= {ast.unparse(node) for node in found if _stays(node)}
        bodies.append("".join(text.splitlines(keepends=True)[found[-1].end_lineno :]).strip())
    return HEAD + "\n".join(sorted(imports)) + "\n\n" + "\n\n\n".join(bodies) + "\n"


_IMPORTS = (ast.Import, ast.ImportFrom)


def _stays(node: ast.Import | ast.ImportFrom) -> bool:
    """Imports of the other parts, and of the future, which stands at the top already, do not."""
    return isinstance(node, ast.Import) or not (node.level or node.module == "__future__")
