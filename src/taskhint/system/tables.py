"""Tables as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the first to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(header))]
    text = ""
    for line in lines:
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=False))
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False
) -> str:
    """With `numbers`, all columns but the first to the right."""
    rules = ["---", *(["---:" if numbers else "---"] * (len(header) - 1))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rules, *rows))
