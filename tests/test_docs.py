"""What the documentation says can be done, is done: commands, Python, the notebook, the site."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import taskhint
from taskhint.cli import COMMANDS, _command_parser, main

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# The pages of which every command and every block of Python is run, smaller than written: these
# one after another in one directory, ...
RUN = ("tutorial", "training", "evaluating")
# ... these each in a directory that has these runs already, ...
TRAIN = "train sort/tempered --set batch_size=8 --steps 2 --out runs/"
CONSTRUCT = "construct --out runs/constructed"
ALONE = {
    "README": (),
    "best": (),
    "clusters": (),
    "explore": (CONSTRUCT,),
    "probing": (f"{TRAIN}standard", f"{TRAIN}tempered", CONSTRUCT),
    "reproduction": (),
}
# ... and these by tests of their own.
ELSEWHERE = {
    "ecosystem": "tests/ecosystem/test_ecosystem_page.py",
    "extending": "tests/test_extending.py",
    "results-out": "tests/test_results_out_page.py",
    "run-directory": "tests/test_docs.py",
}
# What is read and not run, by how it begins, and why.
ONLY_READ = {
    "taskhint: error": "an error message",
    "taskhint explore": "serves until it is stopped: tests/explore starts its server",
    "taskhint reproduce tempered": "hours: tests/experiments/test_reproduce.py runs small ones",
    "taskhint reproduce all": "weeks without a GPU",
    "taskhint reproduce sort-best": "an hour",
    "taskhint reproduce field": "days",
    "taskhint report results": "tests/experiments/test_results.py draws it",
    "taskhint choose": "half an hour: tests/sweeps/test_choose.py runs small ones",
    "taskhint sweep sort/tempered --grid model.width=64,128 --seeds 10": "needs a Ray cluster: "
    "tests/sweeps/test_sweep_ray.py has one",
}
SMALLER = (
    (
        r"^(taskhint sweep .*)--grid model.width=\S+ --seeds 2",
        r"\1--grid model.width=32 --seeds 1",
    ),
    (r"--grid model.temperature=\S+ --grid \S+ --seeds 2", "--grid model.heads=2 --seeds 1"),
    (r"^(taskhint sweep (?!.*--(steps|status)).*)$", r"\1 --steps 4"),
    (r"^(taskhint sweep (?!.*--status).*)$", r"\1 --set batch_size=8 --examples 20"),
    (r"--lengths 10-50:10", "--lengths 4"),
    (r"^(taskhint probe (?!.*--lengths).*)$", r"\1 --lengths 4,8"),
    (r"th.sweep\(\n *\[.*\]", "th.sweep(\n    [SMALL]"),
    (
        r"import taskhint as th\n",
        "import taskhint as th\n\nSMALL = th.recipe('sort/standard').change("
        "steps=4, warmup_steps=1, batch_size=8)\n",
    ),
    (r'"model.width": \[32, 64, 128\]', '"model.width": [32]'),
    (r"seeds=2", "seeds=1"),
    (r"lengths=\[20, 40, 60, 80, 100\]", "lengths=[4], examples=20"),
    (r"--steps 6000", "--steps 6"),
    (r"--steps \d{2,}", "--steps 4"),
    (r"^(taskhint train (?!.*--steps).*)$", r"\1 --steps 4"),
    (r"--examples \d+", "--examples 20"),
    (r"^(taskhint (probe|evaluate) (?!.*--examples).*)$", r"\1 --examples 20"),
    (r"--reach 0.99", "--reach 0.01 --longest 24"),
    (r"--lengths 20-100:20", "--lengths 4-8:4"),
    (r"--lengths [\d,]+", "--lengths 4,8"),
    (r"model.width=256", "model.width=64"),
    (r"batch_size=512", "batch_size=16"),
    (r"^(taskhint train (?!.*batch_size).*)$", r"\1 --set batch_size=16"),
    (
        r'taskhint.train\("sort/tempered"',
        'taskhint.train(taskhint.recipe("sort/tempered").with_steps(4).change(batch_size=16)',
    ),
    (r"steps=100", "steps=3"),
    (r"examples=1000", "examples=20"),
)


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for language, text in BLOCK.findall(page.read_text()):
        if language in languages:
            yield text


def commands(page: Path) -> Iterator[list[str]]:
    """Those that begin with `taskhint`, as words; comments are left out."""
    for text in blocks(page, "", "bash", "console"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] == ["taskhint"] and "…" not in line:
                yield words[1:]


def smaller(text: str) -> str:
    for old, new in SMALLER:
        text = re.sub(old, new, text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_on_a_page_is_one_that_there_is(page: Path) -> None:
    for words in commands(page):
        if words[0].startswith("-"):
            continue
        assert words[0] in COMMANDS, words
        if "--help" not in words:
            _command_parser(words[0]).parse_intermixed_args(words[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_python_on_a_page_is_python(page: Path) -> None:
    for text in blocks(page, "python"):
        compile(text, str(page), "exec")


def test_what_the_guides_say_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page after another in one directory, as a reader would."""
    monkeypatch.chdir(tmp_path)
    for name in RUN:
        page = ROOT / "docs" / f"{name}.md"
        for words in commands(page):
            line = smaller(shlex.join(["taskhint", *words]))
            line = line.replace("runs/", f"{name}/") if words[0] == "train" else line
            line = line.replace("runs/", "tutorial/").replace("report runs", "report tutorial")
            if name == "training":
                line = line.replace("--from tutorial/", "--from training/")
            assert main(shlex.split(line)[1:]) == 0, line
        for number, text in enumerate(blocks(page, "python")):
            program = tmp_path / f"{name}{number}.py"
            program.write_text(smaller(text).replace('"runs/', '"tutorial/'))
            runpy.run_path(str(program))


@pytest.mark.parametrize("name", ALONE)
def test_what_a_page_alone_says_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = next(page for page in PAGES if page.stem == name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    for line in ALONE[name]:
        assert main(line.split()) == 0
    for words in commands(page):
        line = shlex.join(["taskhint", *words])
        if not line.startswith(tuple(ONLY_READ)):
            assert main(shlex.split(smaller(line))[1:]) == 0, line
    for number, text in enumerate(blocks(page, "python")):
        program = tmp_path / f"block{number}.py"
        program.write_text(smaller(text))
        runpy.run_path(str(program))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_is_run_or_says_why_not(page: Path) -> None:
    """A page that is in no list above has no Python, and only commands that are read."""
    if page.stem in {*RUN, *ALONE, *ELSEWHERE}:
        return
    assert not list(blocks(page, "python"))
    for words in commands(page):
        assert shlex.join(["taskhint", *words]).startswith(tuple(ONLY_READ)), words


def test_the_lists_of_what_is_run_have_no_dead_entries() -> None:
    pages = {page.stem for page in PAGES}
    assert {*RUN, *ALONE, *ELSEWHERE} <= pages
    lines = [shlex.join(["taskhint", *words]) for page in PAGES for words in commands(page)]
    every = [*lines, *(text for page in PAGES for text in blocks(page, ""))]
    for start in ONLY_READ:
        assert any(line.startswith(start) for line in every), start
    for path in ELSEWHERE.values():
        assert (ROOT / path).exists()


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    cells = json.loads((ROOT / "notebooks" / "tour.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    text = "import matplotlib\nmatplotlib.use('Agg')\n" + "\n\n".join(code)
    text = text.replace("STEPS = 1000", "STEPS = 3").replace("examples=500", "examples=20")
    program = tmp_path / "tour.py"
    program.write_text(text)
    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "without head 3" in done.stdout


def test_the_plain_forward_pass_reads_the_weights() -> None:
    """Twenty lines of PyTorch on the reference model against the package's own."""
    page = ROOT / "docs" / "run-directory.md"
    (text,) = blocks(page, "python")
    names: dict[str, object] = {}
    exec(compile(text, str(page), "exec"), names)
    run = taskhint.load(ROOT / "results" / "models" / "sort-best")
    prompt = run.task.prompt(run.task.vocab.parse([5, 17, 43, 17, 99, 1]))
    file = next(run.path.glob("checkpoints/*/weights.safetensors"))
    forward = names["logits"]
    assert callable(forward)
    found = forward(file, torch.tensor(prompt), run.recipe.model.heads)
    own = run.model.trace(torch.tensor([prompt]), head="sort", inputs=6)["logits"][0]
    torch.testing.assert_close(found, own, rtol=1e-5, atol=1e-5)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Links inside the documentation are checked by that."""
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "KnockOutHead" in (tmp_path / "site" / "reference" / "python.html").read_text()
