"""kill -9 at any moment, and at every file operation: the run goes on as if nothing had happened,
to the last byte.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parents[2]


def killer(*arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.runs.reliability", *arguments]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run that was killed at each of its file operations in turn."""
    return killer("operations", str(tmp_path_factory.mktemp("operations")))


def test_killed_at_25_random_moments_it_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    result = killer("moments", str(tmp_path), "25")
    assert len(result["killed"]) == 25
    assert result["different"] == []


def test_killed_at_every_file_operation_it_goes_on_to_the_same_bytes(
    operations: dict[str, Any],
) -> None:
    seen = {line.rsplit(" ", 1)[0] for line in operations["operations"]}
    assert {
        "open",
        "write",
        "half of a write",
        "fsync",
        "replace",
        "rename",
        "mkdir",
        "unlink",
        "rmdir",
    } <= seen
    assert operations["different"] == []


def test_data_is_synced_before_it_is_renamed_and_the_directory_after(
    operations: dict[str, Any],
) -> None:
    """What a loss of power must find: it is the order that counts, and no kill shows it."""
    lines: list[str] = operations["operations"]
    renames = [
        i
        for i, line in enumerate(lines)
        if line.startswith(("rename run", "replace run")) and ".tmp" in line
    ]
    assert len(renames) == 4  # recipe, environment, two checkpoints
    for place in renames:
        temporary = lines[place].split(" ", 1)[1]
        written = [line for line in lines[:place] if line.startswith(f"write {temporary}")]
        assert written
        for line in written:
            assert line.replace("write", "fsync", 1) in lines[:place]
        if "step-" in temporary:
            assert f"fsync {temporary}" in lines[:place]  # the directory that holds the files
        assert f"fsync {temporary.rsplit('/', 1)[0]}" in lines[place : place + 3]
