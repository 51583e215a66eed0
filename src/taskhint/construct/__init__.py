"""The transformer that sorts by construction, its named coordinates and the limits of its number
formats.
"""

from __future__ import annotations

from taskhint.construct.coordinates import Coordinates
from taskhint.construct.plan import FORMATS, Plan, largest_length, make_plan, most_symbols
from taskhint.construct.sorting import build, construct, coordinates_of

__all__ = [
    "FORMATS",
    "Coordinates",
    "Plan",
    "build",
    "construct",
    "coordinates_of",
    "largest_length",
    "make_plan",
    "most_symbols",
]
