"""Speed beside other libraries and the machine's limit.

python -m benchmarks train --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks.command import as_text, run_bench
from taskhint.cli import one_line_errors
from taskhint.cli.arguments import Parser, add_threads, use_threads, whole


def main(arguments: Sequence[str] | None = None) -> int:
    return one_line_errors(lambda: _run(_parser().parse_args(arguments)))


def _parser() -> Parser:
    parser = Parser(
        prog="python -m benchmarks",
        description=(
            "Speed beside other libraries and the machine's limit, peak memory, "
            "profile, growth, cost on GPUs."
        ),
    )
    parser.add_argument(
        "part", metavar="PART", help="train, evaluate, data, profile, growth, cost or all"
    )
    parser.add_argument(
        "--rounds", type=whole, metavar="N", help="how often each thing is timed (default: enough)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    add_threads(parser)
    return parser


def _run(options: argparse.Namespace) -> None:
    use_threads(options)
    document = run_bench(options.part, options.rounds)
    print(json.dumps(document, indent=2) if options.json else as_text(document).rstrip())


if __name__ == "__main__":
    sys.exit(main())
