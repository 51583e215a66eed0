"""Where tensors are, and how exactly matrix products are computed. torch is imported when asked.

| precision | products of weights with tokens | attention | weights, optimiser, checkpoints |
|---|---|---|---|
| float32 | float32 | float32 | float32 |
| tf32 | TF32, on CUDA | TF32 | float32 |
| bfloat16 | bfloat16; the last map, to logits, float32 | float32 | float32 |
| bfloat16-attention | the same | bfloat16 | float32 |
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskhint.system.errors import UserError, nearest

if TYPE_CHECKING:
    import torch

DEVICES: Final = ("auto", "cpu", "cuda", "cuda:N", "mps")
PRECISIONS: Final = ("float32", "tf32", "bfloat16", "bfloat16-attention")
TF32_CAPABILITY = (8, 0)  # from Ampere on


@dataclass(frozen=True)
class Compute:
    """A device and a precision; those that `compute` returns are there."""

    device: str = "cpu"
    precision: str = "float32"

    @property
    def torch_device(self) -> torch.device:
        import torch

        return torch.device(self.device)


def compute(device: str = "auto", precision: str = "float32") -> Compute:
    """What a person asked for, checked. `auto` is CUDA where it is there, else the CPU.

    Under torchrun every process takes the CUDA device of its own number on its machine.
    """
    check_names(device, precision)
    found = Compute(_device(device), precision)
    _check_precision(found)
    return found


def check_names(device: str, precision: str) -> None:
    """Whether there are such devices and precisions at all; another machine may have them."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?|mps", device):
        raise UserError(f"device {device!r:.40} is not known; allowed: {', '.join(DEVICES)}")
    if precision not in PRECISIONS:
        raise UserError(
            f"precision {precision!r:.40} is not known; {nearest(str(precision), PRECISIONS)}"
        )


def _device(name: str) -> str:
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "mps" and not torch.backends.mps.is_available():
        raise UserError("device mps is not there: this torch or machine has no Metal; use cpu")
    return _cuda_device(name) if name.startswith("cuda") else name


def _cuda_device(name: str) -> str:
    import torch

    if not torch.cuda.is_available():
        raise UserError(f"device {name} is not there: torch finds no CUDA here; use cpu or auto")
    _, colon, number = name.partition(":")
    count, together = torch.cuda.device_count(), processes() > 1
    if together and colon:
        raise UserError(f"device {name}: under torchrun each process has its own; use cuda")
    here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if together and here > count:
        raise UserError(f"torch finds {count} CUDA devices for {here} processes; start fewer")
    place = int(os.environ["LOCAL_RANK"]) if together else int(number or 0)
    if place >= count:
        raise UserError(f"device cuda:{place} is not there: torch finds {count} CUDA devices")
    return f"cuda:{place}"


def _check_precision(wanted: Compute) -> None:
    import torch

    precision, device = wanted.precision, wanted.device
    cuda = device.startswith("cuda")
    capability = torch.cuda.get_device_capability(device) if cuda else (0, 0)
    if precision == "tf32" and capability < TF32_CAPABILITY:
        raise UserError(
            f"device {device} has no tf32, which needs CUDA of compute capability 8.0 or more; "
            "use float32"
        )
    if precision.startswith("bfloat16") and cuda and not torch.cuda.is_bf16_supported(False):
        raise UserError(f"device {device} has no bfloat16; use float32")


def products(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """While it is entered, matrix products of this thread have the precision."""
    if precision == "float32":
        return nullcontext()
    return tf32(precision) if precision == "tf32" else _bfloat16(device.type)


@contextmanager
def tf32(precision: str) -> Iterator[None]:
    """For the whole process, if that is the precision: on the way back too."""
    import torch

    if precision != "tf32":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def without_onednn() -> Iterator[None]:
    """oneDNN compiles and keeps a GELU for every new shape, and without padding every batch is a
    new shape.

    That is a gigabyte after three thousand updates. torch's own GELU is as fast.
    """
    import torch

    before = torch._C._get_mkldnn_enabled()
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before  # type: ignore[assignment]


@contextmanager
def _bfloat16(kind: str) -> Iterator[None]:
    import torch

    with torch.autocast(kind, torch.bfloat16):
        yield


def exact_products(device: torch.device) -> AbstractContextManager[None]:
    """While it is entered, products have the precision of what is multiplied."""
    import torch

    if device.type == "meta" or not torch.is_autocast_enabled(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def processes() -> int:
    """How many processes torchrun started for one piece of work; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", 1)) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def speaks(everywhere: bool = True) -> bool:
    """Whether this process tells what happens: of those that torchrun started, the first one.

    With `everywhere=False` the first one of this machine.
    """
    rank = "RANK" if everywhere else "LOCAL_RANK"
    return processes() == 1 or os.environ.get(rank, "0") == "0"
