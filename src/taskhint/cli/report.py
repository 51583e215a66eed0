"""`taskhint report`: one HTML file on everything below a directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from taskhint.cli.arguments import Parser
from taskhint.system.errors import UserError
from taskhint.system.extras import need

EXAMPLE = "taskhint report runs --out report.html"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("dir", metavar="DIR", help="a run, or a directory with runs in it")
    parser.add_argument("--out", metavar="FILE.html", required=True, help="the file to write")


def run(options: argparse.Namespace) -> None:
    out = Path(options.out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {out}: the report is HTML; name a file that ends in .html")
    need("matplotlib", "taskhint report")
    from taskhint.report.page import write_report

    print(write_report(Path(options.dir), out))
