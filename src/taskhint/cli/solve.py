"""`taskhint solve`: what the model answers to one input."""

from __future__ import annotations

import argparse

from taskhint.cli.arguments import Parser, add_device, add_run

EXAMPLE = "taskhint solve runs/tempered 5 17 43 17"


def add_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument(
        "symbols", nargs="*", metavar="SYMBOL", help='the input: 5 17 43, or "5 17 43"'
    )
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    from taskhint.runs.run import load
    from taskhint.training.limits import check_answer

    symbols = [symbol for word in options.symbols for symbol in word.split()]
    run = load(options.run_dir, options.device, options.precision)
    prompt = run.task.prompt(run.task.vocab.parse(symbols))
    check_answer(run.recipe.model, run.task, prompt, run.model.device)
    print(" ".join(map(str, run.solve(symbols))))
