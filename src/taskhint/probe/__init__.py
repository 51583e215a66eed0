"""Looking inside: from a model and inputs to labelled numbers and their figures.

One file per probe; `study` runs all of them on a run. The names below are imported when they are
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskhint.probe.attention import attention_by_length
    from taskhint.probe.bases import measure_bases
    from taskhint.probe.errors import first_errors
    from taskhint.probe.maps import attention_maps
    from taskhint.probe.mechanism import Mechanism, Verdict
    from taskhint.probe.mechanisms import measure_mechanisms
    from taskhint.probe.probe import Probe, Shown
    from taskhint.probe.projections import project
    from taskhint.probe.stages import answer_by_stage
    from taskhint.probe.study import Study, compare, make_plan
    from taskhint.probe.traced import Rows, Subject, Traced, traces

_HOMES = {
    "Mechanism": "mechanism",
    "Probe": "probe",
    "Rows": "traced",
    "Shown": "probe",
    "Study": "study",
    "Subject": "traced",
    "Traced": "traced",
    "Verdict": "mechanism",
    "answer_by_stage": "stages",
    "attention_by_length": "attention",
    "attention_maps": "maps",
    "compare": "study",
    "first_errors": "errors",
    "make_plan": "study",
    "measure_bases": "bases",
    "measure_mechanisms": "mechanisms",
    "project": "projections",
    "traces": "traced",
}

__all__ = [
    "Mechanism",
    "Probe",
    "Rows",
    "Shown",
    "Study",
    "Subject",
    "Traced",
    "Verdict",
    "answer_by_stage",
    "attention_by_length",
    "attention_maps",
    "compare",
    "first_errors",
    "make_plan",
    "measure_bases",
    "measure_mechanisms",
    "project",
    "traces",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'taskhint.probe' has no attribute {name!r}")
    return getattr(import_module(f"taskhint.probe.{_HOMES[name]}"), name)
