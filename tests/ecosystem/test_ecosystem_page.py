"""docs/ecosystem.md: its commands and its Python, in an empty directory; its table of names."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from taskhint.cli import main
from taskhint.lens import LENS_NAMES
from tests.ecosystem.models import one_thread

__all__ = ["one_thread"]

PAGE = (Path(__file__).parents[2] / "docs" / "ecosystem.md").read_text()
BLOCK = re.compile(r"```(bash|python)\n(.*?)```", re.DOTALL)


def test_what_the_page_says_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE)
    for command in "".join(text for kind, text in blocks if kind == "bash").splitlines():
        words = command.split()
        assert words[0] == "taskhint"
        assert main(words[1:]) == 0
    assert capsys.readouterr().out.endswith("5 17 17 43\n")
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(text for kind, text in blocks if kind == "python"))
    runpy.run_path(str(program))
    said = capsys.readouterr().out
    assert "['5', '17', '17']\n['5', '17', '43']" in said


def test_the_page_has_the_table_of_names() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| \(", PAGE, re.MULTILINE)
    assert dict(rows) == LENS_NAMES
