"""What is built and installed: contents of wheel and sdist, and a core that needs torch, NumPy and
safetensors alone.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import taskhint
from taskhint.cli import main
from taskhint.model.softmax import Entmax15
from taskhint.sweeps.cluster import connected
from taskhint.system import extras
from taskhint.system.errors import UserError
from taskhint.system.extras import EXTRAS, need

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SMALL = ["model.width=16", "model.mlp_width=16", "model.heads=2", "batch_size=8"]
# The only modules that do not import without their packages.
NEED_PACKAGES = {
    "taskhint.ecosystem.configuration_taskhint",
    "taskhint.ecosystem.lens",
    "taskhint.ecosystem.modeling_taskhint",
    "taskhint.explore.connections",
    "taskhint.explore.guard",
    "taskhint.explore.saved",
    "taskhint.explore.serve",
    "taskhint.explore.server",
    "taskhint.hf",
    "taskhint.lens",
}
IMPORT_ALL = """
import pkgutil, taskhint, importlib
for found in pkgutil.walk_packages(taskhint.__path__, "taskhint."):
    if not found.name.endswith("__main__"):
        try:
            importlib.import_module(found.name)
        except (ImportError, taskhint.UserError):
            print(found.name)
"""


def build(source: Path, out: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "taskhint").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(contents(wheel))
    info = f"taskhint-{taskhint.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(info)} == wanted
    assert {"taskhint/py.typed", "taskhint/explore/static/index.html"} <= names
    assert f"{info}licenses/LICENSE" in names


def test_the_sdist_is_small_and_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build(ROOT, tmp_path / "sdist", "sdist")) as archive:
        tops = {PurePosixPath(name).parts[1] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    assert {"src", "LICENSE", "README.md", "pyproject.toml"} <= tops
    assert not tops & {"tests", "results", "docs", "benchmarks", "tools"}
    (folder,) = tmp_path.glob("taskhint-*")
    assert contents(build(folder, tmp_path / "again", "wheel")) == contents(wheel)


def needed(names: list[str]) -> set[str]:
    """Everything that pip would install for these, by the packages' own words."""
    found: set[str] = set()
    for line in names:
        one = Requirement(line)
        if one.name in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found |= {one.name} | needed(distribution(one.name).requires or [])
    return found


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it depends on, and no extra."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    for name in needed(PROJECT["dependencies"]):
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(str(distribution(name).locate_file(top)))
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"]
    options = ["--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return home / "bin"


def run(program: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_the_core_works_without_any_extra(bare: Path, tmp_path: Path) -> None:
    taskhint, run_dir = bare / "taskhint", str(tmp_path / "run")
    assert "commands:" in run(taskhint, "--help").stdout
    settings = [word for one in SMALL for word in ("--set", one)]
    run(taskhint, "train", "sort/tempered", "--out", run_dir, "--steps", "2", *settings)
    told = run(
        taskhint,
        *("evaluate", run_dir, "--lengths", "4", "--examples", "8", "--edit-distance"),
    )
    assert "edit" in told.stdout
    assert len(run(taskhint, "solve", run_dir, "5", "17", "3").stdout.split()) >= 3
    report = run(taskhint, "report", run_dir, "--out", str(tmp_path / "r.html"), code=2)
    assert report.stderr == (
        "taskhint: error: taskhint report needs the package matplotlib; "
        "install it with: pip install 'taskhint[report]'\n"
    )


def test_everything_but_the_extras_imports_without_them(bare: Path) -> None:
    assert set(run(bare / "python", "-c", IMPORT_ALL).stdout.split()) == NEED_PACKAGES


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["report", "runs", "--out", "report.html"], "report"),
        (["probe", "runs/a", "--out", "inside"], "probe"),
        (["sweep", "sort/tempered", "--out", "swept", "--lengths", "5"], "report"),
        (["demo", "--out", "demo"], "report"),
        (["reproduce", "hint", "--out", "reproduced"], "report"),
        (["explore", "runs/a"], "explore"),
    ],
)
def test_a_command_names_the_extra_before_it_works(
    words: list[str],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(extras, "installed", lambda _module: False)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.endswith(f"pip install 'taskhint[{extra}]'\n")
    assert not list(tmp_path.iterdir())


def test_the_same_line_in_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extras, "installed", lambda _module: False)
    works: dict[str, Callable[[], object]] = {
        "report": lambda: taskhint.sweep("sort/tempered", tmp_path / "out", lengths=[5]),
        "entmax": Entmax15().check_installed,
        "ray": lambda: connected(None),
    }
    for extra, work in works.items():
        with pytest.raises(UserError, match=re.escape(f"pip install 'taskhint[{extra}]'")):
            work()
    for name, extra in {"taskhint.hf": "transformers", "taskhint.lens": "lens"}.items():
        monkeypatch.delitem(sys.modules, name, raising=False)
        with pytest.raises(UserError, match=re.escape(f"pip install 'taskhint[{extra}]'")):
            importlib.import_module(name)


def test_extras_have_the_packages_that_are_asked_for() -> None:
    offered = PROJECT["optional-dependencies"]
    for module, (extra, package) in EXTRAS.items():
        assert package in {Requirement(one).name for one in offered[extra]}
        need(module, "this test")
    everything = Requirement(offered["all"][0]).extras
    apart = {"all", "bench", "docs", "test", "wandb", "trackio"}  # for developers; services
    assert everything | apart == set(offered)


def test_missing_is_what_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not extras.installed("matplotlib")
    assert not extras.installed("no_such_package_anywhere")
    assert extras.installed("json")


def test_a_system_without_fcntl_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows, that is. `import taskhint` works there, for the names that touch no run."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.delitem(sys.modules, "taskhint.system.lock", raising=False)
    with pytest.raises(UserError, match=r"works on Linux and macOS; on Windows .* WSL"):
        importlib.import_module("taskhint.system.lock")


def test_help_imports_neither_torch_nor_numpy() -> None:
    text = (
        "import sys\nfrom taskhint.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "sys.exit(bool({'torch', 'numpy', 'rich', 'matplotlib'} & set(sys.modules)))"
    )
    run(Path(sys.executable), "-c", text)


def test_versions_are_the_same_everywhere() -> None:
    assert PROJECT["version"] == taskhint.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [taskhint.__version__]
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert f"PYTHONS ?= {' '.join(pythons)}\n" in (ROOT / "Makefile").read_text()
    forge = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert f"python: [{', '.join(repr(one) for one in pythons)}]".replace("'", '"') in forge
    locked = (ROOT / "requirements.lock").read_text()
    for line in PROJECT["dependencies"]:
        one = Requirement(line)
        (version,) = re.findall(rf"^{one.name}==(.*)$", locked, re.MULTILINE)
        assert version in one.specifier
