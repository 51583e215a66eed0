"""What is known to carry over to longer inputs, by task: from results, else from theory.

The measurements are in a file that `tools/fill_pages.py` takes from results/. It names tasks by
kind, and of each the position schemes that were tried with the reach of the median seed, in
training lengths; 0 where the training lengths were not learned.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from taskhint.system.files import read_json
from taskhint.system.settings import conform
from taskhint.tasks.task import Task

REACHES = Path(__file__).parent / "reaches.json"
CARRIES = 2.0  # times the longest training length: from here on a task is said to carry over
MOST_NAMED = 3
Reaches = dict[str, dict[str, float]]


@cache
def measured_reaches() -> Reaches:
    found: Reaches = conform(Reaches, read_json(REACHES), str(REACHES))
    return found


def known_to_carry(task: type[Task], reaches: Reaches | None = None) -> str:
    """In a few words; nothing if nobody measured and no theory speaks of it."""
    tried = (measured_reaches() if reaches is None else reaches).get(task.kind)
    return _measured(tried) if tried else _predicted(task)


def _measured(tried: dict[str, float]) -> str:
    far = {scheme: times for scheme, times in tried.items() if times >= CARRIES}
    if not far:
        learned = sum(times > 0 for times in tried.values())
        return f"carries under none of {len(tried)} schemes ({learned} learn the training lengths)"
    best = sorted(far, key=lambda scheme: -far[scheme])
    named = "; ".join(f"{one} {far[one]:g}×" for one in best[:MOST_NAMED])
    more = f"; {len(best) - MOST_NAMED} more" if len(best) > MOST_NAMED else ""
    return f"carries with {named}{more}"


def _predicted(task: type[Task]) -> str:
    theory = task.theory
    if theory is None:
        return ""
    if theory.without_positions:
        return "theory: carries without positions"
    if theory.with_positions:
        return "theory: carries with absolute positions, fails without"
    return "theory: fails without positions and with absolute ones"
