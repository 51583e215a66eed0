"""What peers publish of the field's tasks, and how their protocols differ from ours."""

from __future__ import annotations

from dataclasses import dataclass

LACOCO = "Huang et al. 2025"
ASENTMAX = "Vasylenko et al. 2025 (ASEntmax)"
COUPLING = "Cho et al. 2024 (position coupling)"
ABACUS = "McLeish et al. 2024 (Abacus)"
TURING = "Hou et al. 2024 (Turing programs)"
PERFECT_RUNS = (
    "means over runs that were perfect at the training lengths; AdamW, up to 30,000 updates"
)
BEST_RUN = "best of 3 seeds and several learning rates; 8 heads, width 256"


@dataclass(frozen=True)
class Peer:
    """A published share of right answers, in percent. `scheme` is the nearest of ours, `times` the
    nearest multiple of the training length at which we test.
    """

    row: str
    source: str
    scheme: str
    theirs: str  # what they call their scheme
    protocol: str  # trained lengths → tested ones
    percent: str
    times: float
    differs: str


def _lacoco(row: str, scheme: str, theirs: str, percent: str, tested: str = "101–150") -> Peer:
    times = 2.5 if tested == "101–150" else 1.5
    protocol = f"≤50 → {tested}"
    return Peer(row, LACOCO, scheme, theirs, protocol, percent, times, PERFECT_RUNS)


NO, OFFSET = "no positions", "learned, random offset"
PEERS = (
    _lacoco("copy", "none", NO, "0"),
    _lacoco("copy", "offset", OFFSET, "98.7"),
    _lacoco("copy-repeats", "none", NO, "28", "51–100"),
    _lacoco("copy-repeats", "none", NO, "0"),
    Peer("copy-repeats", ASENTMAX, "nape", "NAPE, softmax", "≤64 → 4,096", "85.5", 5, BEST_RUN),
    Peer("reverse", ASENTMAX, "nape", "NAPE, ASEntmax", "≤64 → 256", "96.4", 5, BEST_RUN),
    _lacoco("addition", "none", NO, "27.7", "51–100"),
    _lacoco("addition", "none", NO, "0"),
    Peer(
        "addition",
        COUPLING,
        "coupling",
        "coupling, learned",
        "≤30 → 200",
        "above 95",
        5,
        "from a secondary source; we train for fewer updates",
    ),
    Peer(
        "addition",
        ABACUS,
        "abacus",
        "Abacus, looped blocks",
        "≤20 → 100",
        "99",
        5,
        "looped blocks with input injection; ours are not looped",
    ),
    Peer(
        "multiplication",
        TURING,
        "windows",
        "Turing programs",
        "≤50 → 100",
        "97",
        2,
        "a scratchpad of whole tape states, from a secondary source; n digits × 1 or 3",
    ),
    _lacoco("parity", "none", NO, "63"),
    _lacoco("mode", "none", NO, "98.5"),
    _lacoco("mode", "offset", OFFSET, "97.8"),
    Peer(
        "recall",
        ASENTMAX,
        "nape",
        "NAPE, ASEntmax",
        "≤64 → 65,536",
        "95.3",
        5,
        f"several queries with keys of several tokens; {BEST_RUN}",
    ),
)
