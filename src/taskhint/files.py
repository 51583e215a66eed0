"""Writing files so that a reader sees the old one or the new one, never a part; reading JSON that may be damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from taskhint.errors import UserError

MAX_JSON_BYTES = 64 * 1024 * 1024


def write_atomically(path: Path, data: bytes) -> None:
    """To a temporary name beside it, synced, renamed; the directory synced too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_synced(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_bytes(data: Any) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_json(path: Path) -> Any:
    """The document in a file, or a UserError that names the file."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise UserError(f"{path} is larger than {MAX_JSON_BYTES} bytes; it is not a file of a run")
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: it is not JSON ({str(error)[:80]})") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
