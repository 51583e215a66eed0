"""Sweeps where storage or the cluster gives out: one line, what is done stays, the same command
goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskhint.cli import main
from taskhint.sweeps.status import status
from taskhint.system import files, lease
from taskhint.system.errors import MachineError
from taskhint.system.lease import Lease, newest, numbers
from tests.runs.reliability import contents, ended, forked

SMALL = ["model.width=16", "model.mlp_width=16", "model.heads=2", "model.depth=1", "batch_size=4"]
WORDS = [word for one in SMALL for word in ("--set", one)]


def sweeping(out: Path) -> list[str]:
    grid = ["--grid", "learning_rate=0.01,0.02", "--seeds", "2", "--steps", "3"]
    return [
        *("sweep", "sort/standard", *WORDS, *grid, "--lengths", "2,3", "--examples", "20"),
        *("--out", str(out)),
    ]


def one_line(said: str) -> str:
    assert "Traceback" not in said and said.count("\n") == 1
    return said


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_in_the_way_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "file").write_text("mine")
    assert main(sweeping(tmp_path / place)) == 2
    assert "a part of the path is a file" in one_line(capsys.readouterr().err)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_without_permission_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """root can write anywhere, so it steps down."""
    (tmp_path / "shut").mkdir(mode=0o555)
    monkeypatch.chdir(tmp_path)

    def swept() -> None:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        os._exit(main(sweeping(Path("shut"))))

    tmp_path.chmod(0o755)
    assert ended(forked(swept)) == MachineError.exit_code
    assert "shut cannot be written: Permission denied" in one_line(capfd.readouterr().err)
    assert list((tmp_path / "shut").iterdir()) == []


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with room for some of the runs."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=260k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting needs privileges")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_on_a_full_disk_what_is_done_stays_and_the_same_command_goes_on(
    tmp_path: Path, disk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(sweeping(tmp_path / "roomy")) == 0
    capfd.readouterr()
    out = disk / "out"
    assert main(sweeping(out)) == MachineError.exit_code
    said = capfd.readouterr().err
    assert "Traceback" not in said
    last = said.splitlines()[-1]
    assert last.startswith("taskhint: error: ") and "No space left on device" in last
    found = status(out)
    finished = [run.out for run in found.runs if run.state == "done"]
    assert 0 < len(finished) < 4 and found.count("running") == 0
    before = {name: contents(out / name) for name in finished}
    assert said.count("WARNING: ") == 4 - len(finished)

    subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
    assert main(sweeping(out)) == 0
    assert f"4 runs, {len(finished)} of them done" in capfd.readouterr().out
    assert {name: results(out / name) for name in before} == {
        name: results(tmp_path / "roomy" / name) for name in before
    }
    assert results(out) == results(tmp_path / "roomy")


def results(out: Path) -> dict[str, str]:
    """Without locks and leases."""
    return {name: one for name, one in contents(out).items() if "/." not in f"/{name}"}


def test_a_disk_that_is_full_from_the_start_is_one_line(
    disk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (disk / "film").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    assert main(sweeping(disk / "out")) == MachineError.exit_code
    assert "No space left on device" in one_line(capfd.readouterr().err)


def test_a_lease_that_cannot_be_written_is_not_left_behind(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, data: bytes) -> None:  # noqa: ARG001
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lease, "write_all", full)
    with pytest.raises(MachineError, match="No space left on device"):
        Lease(out).__enter__()
    assert numbers(out) == [], "nobody has to watch it"


def test_a_lease_is_given_back_in_the_room_that_it_has(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = files.write_all

    def full(handle: int, data: bytes) -> None:
        if os.fstat(handle).st_size < len(data):
            raise OSError(28, "No space left on device")
        plain(handle, data)

    with Lease(out):
        monkeypatch.setattr(lease, "write_all", full)
    assert newest(out).free
