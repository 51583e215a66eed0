"""The command line. torch is imported only by the commands that need it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import taskhint
from taskhint.errors import Interrupted, MachineError, UserError, nearest

EXAMPLES = """\
examples:
  taskhint list
  taskhint train sort/tempered --out runs/tempered
  taskhint train sort/successor --out runs/s1 --seed 1 --set model.width=256 --set batch_size=512
  taskhint evaluate runs/tempered --lengths 20,50,100 --examples 10000
  taskhint evaluate runs/tempered --lengths 100 --distribution rep:3 --edit-distance --json
  taskhint solve runs/tempered 5 17 43 17
  taskhint construct --out runs/constructed --max-length 5000
  taskhint probe runs/tempered runs/constructed --out inside --input "5 17 43 78 92"
  taskhint report runs --out report.html
  taskhint bench train --json

exit codes:
  0  done
  2  bad input, a damaged file, or a run that another process works on
  3  the machine refused: disk full, directory read-only, worker process killed
  4  a loss, gradient or weight that is not finite; nothing of it was saved as a checkpoint
  130, 143  stopped by SIGINT (Ctrl-C) or SIGTERM; training is saved, and the same command goes on from there
"""


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit code 2, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.replace(chr(10), ' ')} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = build_parser().parse_args(arguments)
        run: Callable[[argparse.Namespace], None] = options.run
        run(options)
        sys.stdout.flush()  # a full disk behind it shows here, where it still can be told
    except UserError as error:
        return _say(f"error: {error}", error.exit_code)
    except Interrupted as stopped:
        return _say(str(stopped), stopped.exit_code)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:
        return _say(f"error: {error}", MachineError.exit_code)
    return 0


def _say(message: str, exit_code: int) -> int:
    print(f"taskhint: {' '.join(message.splitlines())}", file=sys.stderr)
    return exit_code


def build_parser() -> Parser:
    parser = Parser(
        prog="taskhint",
        description="Study length generalization in transformers: train on short inputs, measure on long ones.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"taskhint {taskhint.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    first = (_add_list, _add_train, _add_evaluate, _add_solve)
    for add in (*first, _add_construct, _add_probe, _add_report, _add_bench, _add_demo):
        add(commands)
    commands.choices = _Choices(commands.choices)
    return parser


class _Choices(dict[str, Any]):
    """argparse prints all choices at an unknown command; this one names the nearest."""

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            raise UserError(f"unknown command {name!r}; {nearest(str(name), self)}")
        return True


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], None], about: str, example: str) -> Parser:
    parser: Parser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _add_list(commands: Any) -> None:
    parser = _command(commands, "list", _list, "recipes, tasks and hints, one line each", "taskhint list")
    parser.add_argument("--markdown", action="store_true", help="as the documentation page docs/recipes.md")


def _list(options: argparse.Namespace) -> None:
    from taskhint.listing import as_markdown, as_text

    print(as_markdown() if options.markdown else as_text(), end="")


def _add_train(commands: Any) -> None:
    parser = _command(
        commands,
        "train",
        _train,
        "train a recipe; goes on where DIR left off, if it holds that recipe's run",
        "taskhint train sort/tempered --out runs/tempered --seed 1 --set model.width=256",
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a name from `taskhint list`")
    parser.add_argument("--out", metavar="DIR", required=True, help="the run directory")
    parser.add_argument("--scale", default="pocket", help="pocket (two cores, default) or paper (the paper's settings)")
    parser.add_argument("--seed", type=_whole, metavar="N", help="random seed (default 0)")
    parser.add_argument("--steps", type=_whole, metavar="N", help="updates of all tasks together; warm-up scales along")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change any part of the recipe")
    _add_threads(parser)


def _train(options: argparse.Namespace) -> None:
    from taskhint.recipe import SCALES
    from taskhint.recipes import find_recipe

    if options.scale not in SCALES:
        raise UserError(f"--scale {options.scale} is not known; {nearest(options.scale, SCALES)}")
    recipe = find_recipe(options.recipe, options.scale)
    if options.steps is not None:
        recipe = recipe.with_steps(options.steps)
    if options.seed is not None:
        recipe = recipe.with_overrides(seed=options.seed)
    recipe = recipe.with_settings(options.set)
    _use_threads(options)
    from taskhint.trainer import train

    run = train(recipe, options.out, progress=True)
    print(f"{run.path}: {recipe.name}, seed {recipe.seed}, {recipe.steps} updates")


def _add_evaluate(commands: Any) -> None:
    parser = _command(
        commands,
        "evaluate",
        _evaluate,
        "full-sequence accuracy of a run by length, with 95%% intervals",
        "taskhint evaluate runs/tempered --lengths 20,50,100 --examples 10000 --distribution rep:3",
    )
    _add_run(parser)
    parser.add_argument("--lengths", type=_lengths, required=True, metavar="N,N,...", help="input lengths")
    parser.add_argument("--examples", type=_whole, default=1000, metavar="N", help="test sequences per length (1000)")
    parser.add_argument(
        "--distribution", default="uniform", help="uniform (default), rep:R for sort, nines for increment"
    )
    parser.add_argument("--edit-distance", action="store_true", help="decode the failed ones and measure how far off")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    _add_threads(parser)


def _evaluate(options: argparse.Namespace) -> None:
    _use_threads(options)
    from taskhint.evaluation.exact import evaluate

    curve = evaluate(
        options.run_dir,
        options.lengths,
        options.examples,
        options.distribution,
        options.edit_distance,
        progress=True,
    )
    if options.json:
        print(json.dumps(curve.to_json(), indent=2))
        return
    from taskhint.report.table import curve_table

    print(curve_table(curve), end="")


def _add_solve(commands: Any) -> None:
    parser = _command(
        commands, "solve", _solve, "the model's answer to an input", "taskhint solve runs/tempered 5 17 43 17"
    )
    _add_run(parser)
    parser.add_argument("symbols", nargs="*", metavar="SYMBOL", help="the input, one symbol after another")


def _solve(options: argparse.Namespace) -> None:
    from taskhint.run import load

    print(" ".join(load(options.run_dir).solve(options.symbols)))


def _add_construct(commands: Any) -> None:
    parser = _command(
        commands,
        "construct",
        _construct,
        "write a model that sorts by construction, as a run like any other",
        "taskhint construct --out runs/constructed --symbols 100 --max-length 1000 --layer-norm",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the run directory")
    parser.add_argument("--symbols", type=_whole, default=100, metavar="Q", help="sorts the symbols 1..Q (100)")
    parser.add_argument("--max-length", type=_whole, default=1000, metavar="N", help="longest input to serve (1000)")
    parser.add_argument("--layer-norm", action="store_true", help="normalise after each block")
    parser.add_argument("--dtype", default="float32", help="float64, float32 (default), bfloat16 or float16")


def _construct(options: argparse.Namespace) -> None:
    from taskhint.construct import construct

    run = construct(options.out, options.symbols, options.max_length, options.layer_norm, options.dtype)
    print(f"{run.path}: sorts up to {options.max_length} of the symbols 1..{options.symbols}, in {options.dtype}")


def _add_probe(commands: Any) -> None:
    parser = _command(
        commands,
        "probe",
        _probe,
        "look inside runs: bases, projections, mechanisms, attention, first errors; as figures, numbers and a page",
        'taskhint probe runs/standard runs/tempered --out inside --input "5 17 43 78 92"',
    )
    parser.add_argument("run_dirs", metavar="RUN", nargs="+", help="run directories; several are also compared")
    parser.add_argument("--out", metavar="DIR", required=True, help="where index.html, figures and numbers go")
    parser.add_argument("--input", metavar="SYMBOLS", help='the input to look at token by token, as "5 17 43 78 92"')
    parser.add_argument(
        "--lengths", type=_lengths, metavar="N,N,...", help="input lengths (default: 5 to 100 for sort)"
    )
    parser.add_argument("--examples", type=_whole, default=200, metavar="N", help="test sequences per length (200)")
    _add_threads(parser)


def _probe(options: argparse.Namespace) -> None:
    _use_threads(options)
    from taskhint.report.probe_page import mechanisms_table, write_probe

    out = Path(options.out)
    found = write_probe(options.run_dirs, out, options.input, options.lengths, options.examples, progress=True)
    print(f"{mechanisms_table(found)}\nPage: {out / 'index.html'}")


def _add_report(commands: Any) -> None:
    parser = _command(
        commands,
        "report",
        _report,
        "one HTML file with the curves and tables of every evaluated run below DIR",
        "taskhint report runs --out report.html",
    )
    parser.add_argument("dir", metavar="DIR", help="a run, or a directory with runs in it")
    parser.add_argument("--out", metavar="FILE.html", required=True, help="the file to write")


def _report(options: argparse.Namespace) -> None:
    from taskhint.report.page import write_report

    print(write_report(Path(options.dir), Path(options.out)))


def _add_bench(commands: Any) -> None:
    about = "speed beside other libraries and the machine's limit, peak memory, profile, growth, cost on GPUs"
    parser = _command(commands, "bench", _bench, about, "taskhint bench train --json")
    parser.add_argument("part", metavar="PART", help="train, evaluate, data, profile, growth, cost or all")
    parser.add_argument("--rounds", type=_whole, metavar="N", help="how often each thing is timed (default: enough)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    _add_threads(parser)


def _bench(options: argparse.Namespace) -> None:
    _use_threads(options)
    from taskhint.bench.command import as_text, run_bench

    document = run_bench(options.part, options.rounds)
    print(json.dumps(document, indent=2) if options.json else as_text(document).rstrip())


def _add_demo(commands: Any) -> None:
    parser = _command(
        commands,
        "demo",
        _demo,
        "train plain, tempered and hinted models, compare them by length, write a report",
        "taskhint demo --out demo",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="where runs and report.html go")


def _demo(options: argparse.Namespace) -> None:
    from taskhint.demo import demo

    demo(Path(options.out))


def _add_run(parser: Parser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help="a run directory")


def _add_threads(parser: Parser) -> None:
    parser.add_argument("--threads", type=_whole, metavar="N", help="processor threads (default: all cores)")


def _use_threads(options: argparse.Namespace) -> None:
    if options.threads is not None:
        import torch

        torch.set_num_threads(options.threads)


def _whole(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"{text!r} is not a whole number") from None
    if value < 0:
        raise UserError(f"{value} is negative; allowed: whole numbers")
    return value


def _lengths(text: str) -> list[int]:
    lengths = [_whole(part) for part in text.split(",")]
    if 0 in lengths:
        raise UserError("length 0 is not allowed; allowed: whole numbers of at least 1")
    return lengths
