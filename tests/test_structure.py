"""The shape of the package: imports point one way, files stay readable, nothing unpickles."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "taskhint"

# Each room may import from those above it in this list (and from itself).
ROOMS = [
    "system",
    "tasks",
    "data",
    "model",
    "recipes",
    "runs",
    "training",
    "evaluation",
    "probe",
    "construct",
    "experiments",
    "report",
    "sweeps",
    "ecosystem",
    "hf",
    "lens",
    "explore",
    "cli",
]


def modules() -> list[Path]:
    return [
        path
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py") or path.parent != PACKAGE
    ]


def room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("taskhint."):
            found.add(str(node.module).split(".")[1])
    return found


def test_every_module_stands_in_a_room() -> None:
    assert {room(path) for path in modules()} == set(ROOMS)


def test_imports_point_one_way() -> None:
    for path in modules():
        own = ROOMS.index(room(path))
        for other in imported_rooms(path) - {room(path)}:
            assert ROOMS.index(other) < own, f"{path.relative_to(PACKAGE)} imports {other}"


def test_tasks_are_numpy_only() -> None:
    for path in (PACKAGE / "tasks").glob("*.py"):
        assert "torch" not in path.read_text(), path


def test_nothing_unpickles() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text().replace(".eval()", "").replace("safetensors.torch.", "")
        for word in (
            "import pickle",
            "torch.load(",
            "torch.save(",
            "allow_pickle",
            "eval(",
            "exec(",
        ):
            assert word not in text, f"{path}: {word}"


def test_files_read_in_one_sitting() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 350, path
