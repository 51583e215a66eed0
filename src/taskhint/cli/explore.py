"""`taskhint explore`: a page on this machine that shows models thinking, or one file with it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from taskhint.cli.arguments import Parser, add_device, add_threads, use_threads, whole
from taskhint.system.errors import UserError
from taskhint.system.extras import need

if TYPE_CHECKING:
    from taskhint.explore.subject import Subject

EXAMPLE = 'taskhint explore runs/standard runs/tempered --save page.html --input "5 17 43 17"'


def add_arguments(parser: Parser) -> None:
    parser.add_argument("run_dirs", metavar="RUN", nargs="+", help="run directories")
    parser.add_argument(
        "--port", type=whole, default=0, metavar="N", help="port on loopback (default: a free one)"
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, open no browser"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SYMBOLS",
        help='the input to begin with, as "5 17 43 17"; repeatable with --save',
    )
    parser.add_argument(
        "--edit",
        action="append",
        default=[],
        metavar="EDIT",
        help='an intervention to save too, as "knock-out-head block=1 head=0" (repeatable)',
    )
    parser.add_argument(
        "--save",
        dest="page",  # not `save`, which every object has once nnsight is imported
        metavar="FILE.html",
        help="write one file that needs no server, and end",
    )
    add_threads(parser)
    add_device(parser)


def run(options: argparse.Namespace) -> None:
    if options.page is not None and Path(options.page).suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--save {options.page}: the page is HTML; name a file that ends in .html")
    use_threads(options)
    for package in ("starlette", "uvicorn"):
        need(package, "taskhint explore")
    from taskhint.explore.subject import subjects

    models = subjects(options.run_dirs, options.device, options.precision)
    if options.page is not None:
        _save(models, options)
    else:
        _serve(models, options)


def _save(models: list[Subject], options: argparse.Namespace) -> None:
    from taskhint.explore.saved import parse_edit, saved_page
    from taskhint.system.files import write_atomically

    inputs = [_words(text) for text in options.input]
    if not inputs:
        raise UserError('--save needs --input, as in --input "5 17 43 17"')
    page = saved_page(models, inputs, [parse_edit(text) for text in options.edit])
    write_atomically(Path(options.page), page.encode())
    what = f"{_count(len(models), 'model')}, {_count(len(inputs), 'input')}"
    print(f"{options.page}: {what}, {len(page) / 1e6:.1f} MB")


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _serve(models: list[Subject], options: argparse.Namespace) -> None:
    from urllib.parse import quote_plus

    from taskhint.explore.serve import serve

    if len(options.input) > 1 or options.edit:
        raise UserError("several inputs and --edit go with --save; on the page they can be chosen")
    if options.input:
        models[0].sequence(_words(options.input[0]))
    state = f"#input={quote_plus(options.input[0])}" if options.input else ""

    def ready(address: str) -> None:
        print(f"Open {address}{state}\nCtrl-C ends it.", flush=True)
        if not options.no_open and _has_screen():
            import webbrowser

            webbrowser.open(address + state)

    serve(models, options.port, ready)
    print("\nended")


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _has_screen() -> bool:
    """Without one, a text browser would take over the terminal."""
    named = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or bool(named)
