"""How strong every part of the construction must be, and how far a number format carries it.

Letters: q symbols, N the longest input to serve, m keys that a query sees, u the unit roundoff of
the number format. docs/construction.md derives every number here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast, get_args

import torch

from taskhint.construct.coordinates import Coordinates, needed
from taskhint.model.config import NumberFormat
from taskhint.system.errors import UserError, nearest
from taskhint.tasks.lengths import MAX_LENGTH

FORMATS: tuple[str, ...] = get_args(NumberFormat)

PAPER_BETA = 3.0
_LEAST_GAP = 1 / 2  # of two neighbouring symbols' logits, what rounding must leave
_SUMS = torch.float32  # the shorter formats are summed in this one


@dataclass(frozen=True)
class Plan:
    """Every free number of the construction.

    Logits are in units of β·ln m: `own` for the one kind of key that a query looks for (its own
    symbol, or ⊥), and 1 between neighbouring symbols where the smallest is sought. `remaining` and
    `successor` are what the two heads of block 2 write; the smallest useful average is 1/(2N-1),
    so remaining/successor must be over 2N. `unit_before` and `unit_after` are the size of a 1 in
    the stream before and after the first layer normalisation.
    """

    coordinates: Coordinates
    max_length: int
    dtype: NumberFormat
    beta: float
    own: float
    remaining: float
    successor: float
    unit_before: float = 1.0
    unit_after: float = 1.0


def make_plan(symbols: int, max_length: int, layer_norm: bool, number_format: str) -> Plan:
    """The construction for q symbols and inputs of up to `max_length`, or a refusal that says what
    is possible.
    """
    dtype = as_dtype(number_format)
    _check(symbols, max_length, layer_norm, number_format)
    unit = _unit_after_norm(symbols, dtype) if layer_norm else 1
    beta = PAPER_BETA / (1 - _unit_roundoff(dtype) * symbols)
    # Leaks between symbols shrink as m^(1-own·β): even for m = 2 they stay below 1/(128 N).
    own = math.ceil((8 + math.log2(max_length)) / beta)
    ratio = 2.0 ** math.ceil(math.log2(4 * max_length))
    largest = 2.0 ** math.floor(math.log2(torch.finfo(dtype).max / 8 / unit))
    remaining = min(ratio / 2, largest)
    return Plan(
        coordinates=Coordinates(
            symbols, 3 * unit**2 if layer_norm else needed(symbols), layer_norm
        ),
        max_length=max_length,
        dtype=cast(NumberFormat, number_format),
        beta=beta,
        own=own,
        remaining=remaining,
        successor=remaining / ratio,
        unit_before=16.0
        if layer_norm
        else 1.0,  # so that the norm's own small constant is lost beside it
        unit_after=float(unit),
    )


def as_dtype(number_format: str) -> torch.dtype:
    if number_format not in FORMATS:
        raise UserError(f"--dtype {number_format} is not known; {nearest(number_format, FORMATS)}")
    dtype: torch.dtype = getattr(torch, number_format)
    return dtype


def largest_length(number_format: str, layer_norm: bool) -> int:
    """The longest input that may be asked for: what the number format serves, as far as a task can
    be that long.
    """
    return min(MAX_LENGTH, exact_length(number_format, layer_norm))


def exact_length(number_format: str, layer_norm: bool) -> int:
    """The longest input that the construction serves in a number format.

    Copies are counted by sums of +1 and -1, exact as long as 2N terms are. Layer normalisation is
    computed in the format of the sums and may leave marks of inputs and answers a few roundings
    apart; a short format rounds that away.
    """
    dtype = as_dtype(number_format)
    summed = torch.float64 if dtype == torch.float64 else _SUMS
    spare_bits = 6 if layer_norm and dtype == summed else 1
    longest = 2 ** (significand_bits(summed) - spare_bits)
    if dtype == torch.float16:  # ln m needs m itself, and up to 2N keys are seen
        longest = min(longest, int(torch.finfo(dtype).max) // 2)
    return longest


def most_symbols(number_format: str) -> int:
    """Logits of q symbols in a row reach ±q/2 and are rounded once: neighbours keep 1 - q·u of
    their distance.
    """
    return int((1 - _LEAST_GAP) / _unit_roundoff(as_dtype(number_format)))


def significand_bits(dtype: torch.dtype) -> int:
    return 1 - round(math.log2(torch.finfo(dtype).eps))


def _unit_roundoff(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def _unit_after_norm(symbols: int, dtype: torch.dtype) -> int:
    """k, such that normalising 3k² coordinates, of which three hold a 1, makes that 1 a k.

    A whole number is exact in every format. In the short formats a power of two also keeps every
    product exact.
    """
    unit = math.isqrt(math.ceil(needed(symbols) / 3) - 1) + 1
    return (
        unit
        if significand_bits(dtype) >= significand_bits(_SUMS)
        else 2 ** math.ceil(math.log2(unit))
    )


def _check(symbols: int, max_length: int, layer_norm: bool, number_format: str) -> None:
    if symbols < 2:
        raise UserError(f"--symbols {symbols} is too few; at least 2")
    if symbols > (most := most_symbols(number_format)):
        raise UserError(f"--symbols {symbols} is too many; in {number_format} at most {most}")
    if max_length < 1:
        raise UserError(f"--max-length {max_length} is too short; at least 1")
    if max_length > (longest := largest_length(number_format, layer_norm)):
        norm = " with layer normalisation" if layer_norm else ""
        raise UserError(
            f"--max-length {max_length} is too long; in {number_format}{norm} at most {longest}"
        )
