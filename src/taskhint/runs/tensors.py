"""Named tensors in safetensors files. Nothing in them is executed, and a file is checked before
memory is taken.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from taskhint.system.errors import UserError
from taskhint.system.files import read_bytes

Wanted = Mapping[str, tuple[torch.dtype, tuple[int, ...]]]
"""The type and shape that each tensor must have."""

_MAX_HEADER = 4 * 1024 * 1024
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    return safetensors.torch.save(
        {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    )


def described(tensors: Mapping[str, Tensor]) -> Wanted:
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def read_tensors(path: Path, wanted: Wanted, sha256: str | None = None) -> dict[str, Tensor]:
    """The tensors of a file whose names, types and shapes are known.

    The bytes that are checked against the SHA-256 are the bytes that are used: nothing can change
    in between.
    """
    size = sum(dtype.itemsize * math.prod(shape) for dtype, shape in wanted.values())
    data = read_bytes(path, 8 + _MAX_HEADER + size)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{path} does not match its SHA-256")
    header = _header(path, data)
    odd = sorted(header.keys() ^ wanted.keys())
    if odd:
        raise UserError(f"{path} does not fit the recipe: {', '.join(odd[:3])!r:.200}")
    for name, (dtype, shape) in wanted.items():
        if header[name] != (_DTYPES.get(dtype), list(shape)):
            raise UserError(
                f"{path} does not fit the recipe: {name} is {header[name]!r:.80}, not {dtype} "
                f"{shape}"
            )
    try:
        return safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} is damaged: {str(error)[:100]}") from None


def _header(path: Path, data: bytes) -> dict[str, tuple[Any, Any]]:
    try:
        (size,) = struct.unpack_from("<Q", data)
        if size > min(_MAX_HEADER, len(data) - 8):
            raise ValueError("its header is too large")
        entries = json.loads(data[8 : 8 + size])
        entries.pop("__metadata__", None)
        return {name: (entry["dtype"], entry["shape"]) for name, entry in entries.items()}
    except (
        struct.error,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise UserError(f"{path} is damaged: {str(error)[:100]}") from None
