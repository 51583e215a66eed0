"""`taskhint probe`: look inside runs; figures, their numbers and a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from taskhint.cli.arguments import Parser, add_device, add_lengths, add_threads, use_threads, whole
from taskhint.system.errors import UserError
from taskhint.system.extras import need

EXAMPLE = 'taskhint probe runs/standard runs/tempered --out inside --input "5 17 43 78 92"'
MOST_EXAMPLES = 100_000  # each is traced in full


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "run_dirs", metavar="RUN", nargs="+", help="run directories; several are also compared"
    )
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="where index.html, figures and numbers go"
    )
    parser.add_argument(
        "--input",
        metavar="SYMBOLS",
        help='the input to look at token by token, as "5 17 43 78 92"',
    )
    add_lengths(parser, "input lengths (default: the task's own choice)")
    parser.add_argument(
        "--examples", type=whole, default=200, metavar="N", help="test sequences per length (200)"
    )
    parser.add_argument(
        "--probe",
        metavar="KIND",
        action="append",
        help="only this probe, as in --probe mechanisms (may be repeated; default: all)",
    )
    add_threads(parser)
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    if options.examples > MOST_EXAMPLES:
        raise UserError(f"--examples {options.examples} is too many; at most {MOST_EXAMPLES}")
    need("matplotlib", "taskhint probe", "probe")
    use_threads(options)
    from taskhint.report.probe_page import mechanisms_table, write_probe
    from taskhint.runs.run import load

    out = Path(options.out)
    runs = [load(path, options.device, options.precision) for path in options.run_dirs]
    found = write_probe(
        runs,
        out,
        options.input,
        options.lengths,
        options.examples,
        progress=True,
        probes=options.probe,
    )
    print(f"{mechanisms_table(found)}\nPage: {out / 'index.html'}")
