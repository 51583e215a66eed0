"""The command line: one line for every error, an exit code for every kind of it.

Each command is a file beside this one with two functions: `add_arguments` and `run`. Only the file
of the chosen command is imported.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from keyword import iskeyword
from types import ModuleType

import taskhint
from taskhint.cli.arguments import Parser
from taskhint.system.devices import speaks
from taskhint.system.errors import Interrupted, MachineError, UserError, nearest, tell
from taskhint.system.memory import out_of_memory, ran_out
from taskhint.system.plugins import import_all

COMMANDS = {
    "list": "recipes, tasks and hints, one line each",
    "train": "train a recipe; goes on where DIR left off, if it holds that recipe's run",
    "evaluate": "full-sequence accuracy of a run by length, with 95% intervals",
    "solve": "the model's answer to an input",
    "export": "copy a run's weights and recipe, as a run or for transformers",
    "import": "a run of a model that was exported for transformers",
    "construct": "write a model that sorts by construction, as a run like any other",
    "probe": "look inside runs: bases, projections, mechanisms, attention, first errors",
    "explore": "a page that shows models thinking, token by token, and lets you intervene",
    "choose": "rank hints or recipes by extrapolation inside the allowed lengths",
    "sweep": "train recipes × a grid × seeds, measure them, write one table and one figure",
    "reproduce": "run experiments on all cores and report on them; without a name, list them",
    "report": "one HTML file with the curves and tables of every evaluated run below DIR",
    "results": "the numbers of every evaluated run as one table: csv or parquet",
    "demo": "train plain, tempered and hinted models, compare them by length, write a report",
}

HELP = f"""\
commands:
{"".join(f"  {name:<10} {about}{chr(10)}" for name, about in COMMANDS.items())}
examples:
  taskhint list
  taskhint train sort/tempered --out runs/tempered
  taskhint train sort/successor --out runs/s1 --seed 1 --set model.width=256 --set batch_size=512
  taskhint train my_file.py:my_recipe --out runs/mine
  taskhint evaluate runs/tempered --lengths 20-100:20 --examples 10000
  taskhint evaluate runs/mine --import my_file.py --lengths 100 --edit-distance --json
  taskhint solve runs/tempered 5 17 43 17
  taskhint construct --out runs/constructed --max-length 5000
  taskhint probe runs/tempered runs/constructed --out inside --input "5 17 43 78 92"
  taskhint explore runs/tempered runs/constructed
  taskhint choose sort --hints successor,count,fill --out chosen
  taskhint sweep sort/tempered --grid model.width=64,128 --lengths 20-100:20 --out sweeps/width
  taskhint reproduce hint tempered --out reproduced
  taskhint report runs --out report.html
  taskhint results runs --to table.csv

exit codes:
  0  done
  2  bad input, a damaged file, or a run that another process works on
  3  the machine refused: disk full, directory read-only, out of memory, worker process killed
  4  a loss, gradient or weight that is not finite; nothing of it was saved as a checkpoint
  130, 143  stopped by SIGINT (Ctrl-C) or SIGTERM; training is saved, the same command goes on
"""


def main(arguments: Sequence[str] | None = None) -> int:
    return one_line_errors(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> None:
    chosen = _parser().parse_args(arguments)
    if chosen.command not in COMMANDS:
        raise UserError(f"unknown command {chosen.command!r}; {nearest(chosen.command, COMMANDS)}")
    command = _module(chosen.command)
    options = _command_parser(chosen.command).parse_intermixed_args(chosen.words)
    if getattr(options, "out", None) == "":  # an empty variable of a shell, and not this directory
        raise UserError("--out is empty; name a file or a directory")
    import_all(options.imports)
    command.run(options)


def one_line_errors(work: Callable[[], None]) -> int:
    """The exit code of some work; what goes wrong without being a bug is said in one line."""
    try:
        work()
        sys.stdout.flush()  # a full disk behind it shows here, where it still can be told
    except UserError as error:
        return error.exit_code if error.told else _say(f"error: {error}", error.exit_code)
    except Interrupted as stopped:
        return _say(str(stopped), stopped.exit_code)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        return _say(f"error: {out_of_memory()}", MachineError.exit_code)
    except OSError as error:
        return _say(f"error: {error}", MachineError.exit_code)
    return 0


def _say(message: str, exit_code: int) -> int:
    """Of the processes that torchrun started on a machine the first one speaks for all."""
    if speaks(everywhere=False):
        tell(message)
    return exit_code


def _parser() -> Parser:
    parser = Parser(
        prog="taskhint",
        description=(
            "Study length generalization in transformers: train on short inputs, "
            "measure on long ones."
        ),
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"taskhint {taskhint.__version__}")
    parser.add_argument("command", metavar="COMMAND", help="see below; each has its own --help")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _module(command: str) -> ModuleType:
    """The file of a command; one whose name is a word of Python ends in _."""
    return import_module(f"taskhint.cli.{command}{'_' if iskeyword(command) else ''}")


def _command_parser(name: str) -> Parser:
    """What a command takes; `--import` is the same for all of them."""
    command = _module(name)
    about = COMMANDS[name]
    parser = Parser(
        prog=f"taskhint {name}",
        description=f"{about[0].upper()}{about[1:]}.",
        epilog=f"example:\n  {command.EXAMPLE}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="FILE_OR_MODULE",
        help="your own tasks, position schemes and so on: a Python file or a module (repeatable)",
    )
    return parser
