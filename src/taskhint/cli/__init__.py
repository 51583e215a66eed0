"""The command line: one line for every error, an exit code for every kind of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import taskhint
from taskhint.cli.arguments import Parser
from taskhint.cli.commands import add_commands
from taskhint.system.errors import Interrupted, MachineError, UserError, nearest

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
  taskhint reproduce hint tempered --out reproduced
  taskhint report runs --out report.html

exit codes:
  0  done
  2  bad input, a damaged file, or a run that another process works on
  3  the machine refused: disk full, directory read-only, worker process killed
  4  a loss, gradient or weight that is not finite; nothing of it was saved as a checkpoint
  130, 143  stopped by SIGINT (Ctrl-C) or SIGTERM; training is saved, the same command goes on
"""


def main(arguments: Sequence[str] | None = None) -> int:
    return one_line_errors(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> None:
    options = build_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = options.run
    command(options)


def one_line_errors(work: Callable[[], None]) -> int:
    """The exit code of some work; whatever goes wrong in it without being a bug is said in one
    line.
    """
    try:
        work()
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
        description=(
            "Study length generalization in transformers: train on short inputs, "
            "measure on long ones."
        ),
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"taskhint {taskhint.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_commands(commands)
    commands.choices = _Choices(commands.choices)
    return parser


class _Choices(dict[str, Any]):
    """argparse prints all choices at an unknown command; this one names the nearest."""

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            raise UserError(f"unknown command {name!r}; {nearest(str(name), self)}")
        return True
