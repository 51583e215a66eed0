"""Learned numbers of position schemes and temperatures: declared with their shape and how they
begin.

This file needs no torch until a model is built, so that recipes can be read without it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Weight:
    """A learned tensor. It begins as normal numbers of this mean and standard deviation; with 0,
    as the mean itself.
    """

    shape: tuple[int, ...] = ()
    mean: float = 0.0
    std: float = 0.0
