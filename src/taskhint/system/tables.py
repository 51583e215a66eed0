"""Tables as plain text, as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Container, Sequence


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


def html_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    kind: str = "",
    faint: Container[int] = (),
) -> str:
    """Of cells that are HTML; `faint` are the numbers of rows in the background."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = ""
    for number, row in enumerate(rows):
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        look = ' class="paper"' if number in faint else ""
        body += f"<tr{look}>{cells}</tr>"
    class_ = f' class="{kind}"' if kind else ""
    above = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f'<div class="wide"><table{class_}>{above}<tbody>{body}</tbody></table></div>'
