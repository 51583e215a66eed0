"""docs/architecture.md is a true map: its rooms are those of the package, its walks are walked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from taskhint.runs.run import Run
from tests.test_structure import PACKAGE, ROOMS

PAGE = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
WALKS = {
    command: re.findall(r"`(\S+?\.py)`", walk)
    for command, walk in re.findall(r"^\| `(\w+)` \| (.*→.*) \|$", PAGE, re.MULTILINE)
}
WALKER = """
import sys, threading
from pathlib import Path
import taskhint
from taskhint.cli import main
root = str(Path(taskhint.__file__).parent) + "/"
entered = {}
def look(frame, event, arg):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        name = frame.f_code.co_name
        if name != "<module>" and not name[0].isupper():  # bodies of modules and of classes
            entered.setdefault(frame.f_code.co_filename[len(root):])
threading.setprofile(look)
sys.setprofile(look)
code = main(sys.argv[1:])
sys.setprofile(None)
print("\\n".join(entered))
sys.exit(code)
"""


def test_rooms_are_those_of_the_package_in_their_order() -> None:
    table = PAGE.partition("## The rooms")[2].partition("## The walk")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", table, re.MULTILINE)
    assert [room for room, _ in rows] == ROOMS
    for room, files in rows:
        for file in re.findall(r"`(\w+\.py)`", files):
            assert (PACKAGE / room / file).exists(), (room, file)


@pytest.mark.parametrize("command", WALKS)
def test_a_command_walks_as_the_page_says(command: str, sorter: Run, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = {
        "train": ["sort/tempered", "--out", out, "--steps", "1", "--set", "batch_size=8"],
        "evaluate": [str(sorter.path), "--lengths", "5", "--examples", "4", "--no-save"],
        "solve": [str(sorter.path), "3 1 2"],
        "probe": [str(sorter.path), "--lengths", "4", "--examples", "4", "--out", out],
        "report": [str(Path(__file__).parent.parent / "results/demo"), "--out", f"{out}.html"],
    }
    walked = subprocess.run(
        [sys.executable, "-c", WALKER, command, *words[command]],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert walked.returncode == 0, walked.stderr
    entered = walked.stdout.splitlines()
    assert set(WALKS[command]) <= set(entered), set(WALKS[command]) - set(entered)
    assert sorted(WALKS[command], key=entered.index) == WALKS[command]


def test_every_walk_is_there() -> None:
    assert set(WALKS) == {"train", "evaluate", "solve", "probe", "report"}
