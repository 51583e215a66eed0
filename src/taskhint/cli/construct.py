"""`taskhint construct`: a sorting transformer with weights written by hand."""

from __future__ import annotations

import argparse

from taskhint.cli.arguments import Parser, whole

EXAMPLE = "taskhint construct --out runs/constructed --symbols 100 --max-length 1000 --layer-norm"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--out", metavar="DIR", required=True, help="the run directory")
    parser.add_argument(
        "--symbols", type=whole, default=100, metavar="Q", help="sorts the symbols 1..Q (100)"
    )
    parser.add_argument(
        "--max-length", type=whole, default=1000, metavar="N", help="longest input to serve (1000)"
    )
    parser.add_argument("--layer-norm", action="store_true", help="normalise after each block")
    parser.add_argument(
        "--dtype", default="float32", help="float64, float32 (default), bfloat16 or float16"
    )


def run(options: argparse.Namespace) -> None:
    from taskhint.construct import construct

    run = construct(
        options.out, options.symbols, options.max_length, options.layer_norm, options.dtype
    )
    print(
        f"{run.path}: sorts up to {options.max_length} of the symbols 1..{options.symbols}, in "
        f"{options.dtype}"
    )
