"""What peers publish of the field's tasks, and how their protocols differ from ours."""

from __future__ import annotations

from dataclasses import dataclass

LACOCO = "Huang et al. 2025"
ASENTMAX = "Vasylenko et al. 2025 (ASEntmax)"
COUPLING = "Cho et al. 2024 (position coupling)"
ABACUS = "McLeish et al. 2024 (Abacus)"
TURING = "Hou et al. 2024 (Turing programs)"
PERFECT_RUNS = "means over 5 runs that were perfect at the training lengths; AdamW"
LARGE_RUNS = (
    "means over 5 runs, none of them perfect at the training lengths; 12 layers, width 768, AdamW"
)
BINARY = (
    "binary numbers of any two lengths, most significant digit first; their length counts the "
    f"whole input; {LARGE_RUNS}"
)
PARITY_RUNS = "means over 5 runs that were perfect at the training lengths; 4 layers, AdamW"
BEST_RUN = "best of 3 seeds and several learning rates; 8 heads, width 256"
SCALED_RUN = f"ours has softmax; {BEST_RUN}"


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


def _lacoco(
    row: str,
    scheme: str,
    percent: str,
    tested: str = "101–150",
    differs: str = PERFECT_RUNS,
) -> Peer:
    times = 2.5 if tested == "101–150" else 1.5
    theirs = {"none": "no positions", "offset": "learned, random offset"}[scheme]
    return Peer(row, LACOCO, scheme, theirs, f"≤50 → {tested}", percent, times, differs)


PEERS = (
    _lacoco("copy", "none", "0"),
    _lacoco("copy", "offset", "98.7"),
    _lacoco("copy-repeats", "none", "28.0", "51–100"),
    _lacoco("copy-repeats", "none", "0"),
    _lacoco("copy-repeats", "offset", "25.6", "51–100"),
    _lacoco("copy-repeats", "offset", "0"),
    Peer(
        "copy-repeats",
        ASENTMAX,
        "nape",
        "NAPE, softmax",
        "32–64 → 4,096",
        "85.5",
        5,
        f"32 symbols, ours 2; {BEST_RUN}",
    ),
    Peer("reverse", ASENTMAX, "nape", "NAPE, ASEntmax", "32–64 → 256", "96.4", 5, SCALED_RUN),
    _lacoco("addition", "none", "27.7", "51–100", BINARY),
    _lacoco("addition", "none", "0", differs=BINARY),
    _lacoco("addition", "offset", "26.8", "51–100", BINARY),
    _lacoco("addition", "offset", "0", differs=BINARY),
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
    _lacoco("parity", "none", "63.3", differs=LARGE_RUNS),
    _lacoco("parity", "offset", "62.1", differs=PARITY_RUNS),
    _lacoco("majority", "none", "100"),
    _lacoco("majority", "offset", "99.96"),
    _lacoco("mode", "none", "98.5"),
    _lacoco("mode", "offset", "97.8"),
    Peer(
        "recall",
        ASENTMAX,
        "nape",
        "NAPE, ASEntmax",
        "up to 64 → 65,536",
        "95.3",
        5,
        f"4 queries with keys and values of 2 tokens; {SCALED_RUN}",
    ),
)
