"""Writing files so that a reader sees the old one or the new one, never a part; reading files that
may be damaged.

A process can be killed and a machine can lose power between any two operations here. Data is
synced before the rename that makes it visible, and the directory after it, so that a file under
its final name is always whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from taskhint.system.errors import MachineError, UserError

MAX_JSON_BYTES = 4 * 1024 * 1024


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turns what the machine refuses into one clear line that names the path."""
    try:
        yield
    except (NotADirectoryError, FileExistsError):
        raise UserError(f"{path} cannot be written: a part of the path is a file") from None
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror or error}") from None


def write_atomically(path: Path, data: bytes) -> None:
    """To a temporary name beside it, synced, renamed; the directory synced too."""
    with storing(path):
        make_directory(path.parent)
        temporary = temporary_name(path)
        try:
            write_synced(temporary, data)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def remove_leftovers(directory: Path) -> None:
    """What killed processes left under temporary names. Only for who alone may write there."""
    for path in directory.glob(".*.tmp"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def write_synced(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def make_directory(path: Path) -> None:
    """The directory and its parents, each entered durably in the one above it."""
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_bytes(data: Any) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_path(value: object, what: str) -> Path:
    """A path that a caller gave, or a UserError that says what it was for."""
    if not isinstance(value, str | os.PathLike):
        raise UserError(f"{what} is given by its path, got {value!r:.60}")
    return Path(value)


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole file; never more than `limit` bytes, whatever stands on the disk."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > limit:
                raise UserError(f"{path} is larger than {limit} bytes; it is not a file of a run")
            return file.read(limit)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def read_json(path: Path) -> Any:
    """The document in a file, or a UserError that names the file."""
    return parse_json(path, read_bytes(path, MAX_JSON_BYTES))


def parse_json(path: Path, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: it is not JSON ({str(error)[:80]})") from None
