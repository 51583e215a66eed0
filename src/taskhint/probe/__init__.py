"""Looking inside: from a model and inputs to labelled values. Nothing here draws; figures show
what stands here.
"""

from __future__ import annotations

from taskhint.probe.attention import attention_by_length, attention_maps
from taskhint.probe.bases import measure_bases
from taskhint.probe.comparison import compare
from taskhint.probe.first_errors import first_errors
from taskhint.probe.lens import answer_by_stage, project
from taskhint.probe.mechanisms import MECHANISMS, measure_mechanisms
from taskhint.probe.study import Study, study
from taskhint.probe.view import Subject, View, views

__all__ = [
    "MECHANISMS",
    "Study",
    "Subject",
    "View",
    "answer_by_stage",
    "attention_by_length",
    "attention_maps",
    "compare",
    "first_errors",
    "measure_bases",
    "measure_mechanisms",
    "project",
    "study",
    "views",
]
