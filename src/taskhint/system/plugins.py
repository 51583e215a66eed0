"""A user's own files and modules: imported because a person names them, never because a file of a
run does.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from taskhint.system.errors import UserError, nearest

GROUP = "taskhint.plugins"
FILE, HASH = (
    "taskhint_file_",
    8,
)  # a file's module is FILE, its name, _ and HASH letters of its path
_imported: dict[str, ModuleType] = {}
_directories: set[Path] = set()  # of imported files, which may import their neighbours


def import_all(sources: Iterable[str]) -> None:
    """What `--import` names, in that order."""
    for source in sources:
        import_source(source)


def imported_sources() -> tuple[str, ...]:
    """What was imported so far, for worker processes that must import it too."""
    return tuple(_imported)


def imported_modules() -> dict[str, ModuleType]:
    """Every imported file and module, by its name as a person would give it."""
    return {
        Path(name).name if name.endswith(".py") else name: module
        for name, module in _imported.items()
    }


def import_source(source: str) -> ModuleType:
    """A Python file by its path, or a module by its name. Each is imported once."""
    is_file = source.endswith(".py")
    name = str(Path(source).resolve()) if is_file else source
    if name not in _imported:
        _imported[name] = _import_file(Path(name), source) if is_file else _import_module(source)
    return _imported[name]


@cache
def import_installed() -> None:
    """Packages that were installed with an entry point in the group `taskhint.plugins`."""
    for entry in entry_points(group=GROUP):
        import_source(entry.value.partition(":")[0])


def split_target(text: str) -> tuple[str, str] | None:
    """`my_file.py:my_recipe` in two; None for a plain name."""
    source, colon, name = text.rpartition(":")
    return (source, name) if colon and source and name.isidentifier() else None


def imported_object(source: str, name: str) -> Any:
    """What a file or module calls by that name."""
    module = import_source(source)
    if not hasattr(module, name):
        raise UserError(
            f"{source} has no {name!r}; {nearest(name, [n for n in vars(module) if n[0] != '_'])}"
        )
    return getattr(module, name)


def imported_value(source: str, name: str, wanted: type[Any]) -> Any:
    """An object of a file or module, or what a function there returns, of the wanted type."""
    value = imported_object(source, name)
    if callable(value) and not isinstance(value, (wanted, type)):
        try:
            value = value()
        except Exception as error:
            raise UserError(f"{source}:{name} fails{_at(source, error)}: {_what(error)}") from None
    if not isinstance(value, wanted):
        kind = wanted.__name__
        raise UserError(f"{source}:{name} is no {kind} and no function that returns one")
    return value


def imported_objects(wanted: type[Any]) -> list[Any]:
    """Everything of a type that stands by a name in an imported file or module."""
    values = [value for module in _imported.values() for value in vars(module).values()]
    return [value for value in values if isinstance(value, wanted)]


def own_sources_of(classes: Iterable[type[Any]]) -> set[tuple[str, str]]:
    """Where a user's classes come from: those that are neither taskhint's nor Python's."""
    known = {"taskhint", *sys.stdlib_module_names} - {"__main__"}
    return {_source(cls) for cls in classes if cls.__module__.partition(".")[0] not in known}


def _source(cls: type[Any]) -> tuple[str, str]:
    """Name and SHA-256 of the file that a class comes from; empty hash where there is none to
    read.
    """
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return cls.__module__, ""
    loose = cls.__module__ == "__main__" or Path(file).parent in _directories
    name = Path(file).name if loose else cls.__module__
    try:
        return name, hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return name, ""


def own_name(module: str) -> str:
    """The name of a module, or the one that an imported file has on disk, without .py."""
    return module[len(FILE) : -HASH - 1] if module.startswith(FILE) else module


def _import_file(path: Path, source: str) -> ModuleType:
    if not path.is_file():
        raise UserError(
            f"{source} does not exist; --import takes a Python file or the name of a module"
        )
    name = f"{FILE}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:HASH]}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise UserError(f"{source} is not a Python file")
    _directories.add(path.parent)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    names = [name, path.stem] if _is_found_by_neighbours(path) else [name]
    if names[-1] in sys.modules:  # another imported file has imported it: its classes exist once
        return sys.modules[names[-1]]
    module = importlib.util.module_from_spec(specification)
    sys.modules.update(dict.fromkeys(names, module))  # dataclasses look their module up there
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        for known in names:
            del sys.modules[known]
        raise _one_line(source, error) from None
    return module


def _is_found_by_neighbours(path: Path) -> bool:
    """Whether `import stem` means this file, and not a package of the same name."""
    found = importlib.util.find_spec(path.stem) if path.stem.isidentifier() else None
    return found is not None and found.origin == str(path)


def _import_module(source: str) -> ModuleType:
    try:
        return importlib.import_module(source)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == source.partition(".")[0]:
            raise UserError(
                f"there is no module {source!r}; --import takes a Python file or a module"
            ) from None
        raise _one_line(source, error) from None


def _one_line(source: str, error: Exception) -> UserError:
    return UserError(f"{source} cannot be imported{_at(source, error)}: {_what(error)}")


def _at(source: str, error: Exception) -> str:
    """The last line of the file that the error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    file = Path(source).name
    return next((f", line {f.lineno}" for f in reversed(frames) if f.filename.endswith(file)), "")


def _what(error: Exception) -> str:
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
