"""Counts what a process asks of the file system below a directory, by kind of operation."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AUDITED = {  # events that Python raises itself
    "open": "open",
    "os.listdir": "list",
    "os.scandir": "list",
    "os.rename": "rename",
    "os.mkdir": "mkdir",
    "os.remove": "remove",
    "os.rmdir": "remove",
}
WRAPPED = {"stat": "stat", "lstat": "stat", "fsync": "fsync"}  # of which it raises none
KINDS = ("open", "stat", "list", "rename", "mkdir", "remove", "fsync")

_counting: list[tuple[Path, Counter[str]]] = []


@contextmanager
def counted(root: Path) -> Iterator[Counter[str]]:
    """While it is entered, operations of all threads on paths below a directory. fsync is counted
    wherever it is, because it is given no path.
    """
    found: Counter[str] = Counter()
    plain = {name: getattr(os, name) for name in WRAPPED}
    _install()
    _counting.append((root.resolve(), found))
    for name, kind in WRAPPED.items():
        setattr(os, name, _noting(plain[name], kind))
    try:
        yield found
    finally:
        _counting.pop()
        for name, function in plain.items():
            setattr(os, name, function)


def _install() -> None:
    """Once: a hook cannot be removed."""
    if not getattr(sys, "_taskhint_counts_storage", False):
        sys.addaudithook(_hook)
        setattr(sys, "_taskhint_counts_storage", True)  # noqa: B010


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _counting and event in AUDITED and arguments:
        _note(AUDITED[event], arguments[0])


def _noting(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    def noting(what: Any, *rest: Any, **named: Any) -> Any:
        _note(kind, what)
        return function(what, *rest, **named)

    return noting


def _note(kind: str, what: Any) -> None:
    for root, found in _counting:
        if kind == "fsync" or _below(what, root):
            found[kind] += 1


def _below(what: Any, root: Path) -> bool:
    if not isinstance(what, str | os.PathLike):
        return False
    path = os.path.abspath(os.fspath(what))  # noqa: PTH100
    return isinstance(path, str) and (path == str(root) or path.startswith(f"{root}/"))
