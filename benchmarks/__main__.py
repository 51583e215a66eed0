"""Speed beside other libraries and the machine's limit.

python -m benchmarks train --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import as_text, merged, run_bench
from taskhint.cli import one_line_errors
from taskhint.cli.arguments import Parser, add_threads, use_threads, whole
from taskhint.system.files import json_bytes, read_json, write_atomically


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
        "part",
        metavar="PART",
        help="train, evaluate, data, field, explore, profile, growth, cost or all",
    )
    parser.add_argument(
        "--rounds", type=whole, metavar="N", help="how often each thing is timed (default: enough)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument(
        "--into", metavar="FILE", help="put the parts into this file of earlier results"
    )
    add_threads(parser)
    return parser


def _run(options: argparse.Namespace) -> None:
    use_threads(options)
    into = Path(options.into) if options.into else None
    before = read_json(into) if into else None  # what cannot be read is told before the wait
    document = run_bench(options.part, options.rounds)
    if into and before:
        write_atomically(into, json_bytes(merged(before, document)))
    print(json.dumps(document, indent=2) if options.json else as_text(document).rstrip())


if __name__ == "__main__":
    sys.exit(main())
