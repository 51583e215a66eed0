"""Every file of a run is opened with anything in it: only clean errors come out, and little memory
is taken.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings

from taskhint.recipes.recipe import Recipe
from taskhint.runs.checkpoint import MANIFEST, STATE, WEIGHTS, Checkpoint, State, read_tensors
from taskhint.runs.curve import LengthCurve, Score, load_curves, save_curve
from taskhint.runs.environment import History, read_history
from taskhint.runs.metrics import Metrics, MetricsWritten
from taskhint.runs.run import Run, load, new_decoder, weight_shapes
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json
from taskhint.system.settings import conform
from taskhint.training.loop import train
from tests.runs.reliability import tiny

MEMORY = 400 * 1024 * 1024  # what a loader may take at most, on top of what is there
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=300)

EXTREMES: list[Any] = [
    -1,
    0,
    10**12,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    True,
    None,
    "",
    "\ud800",
    "a\nb",
    [],
    {},
]
numbers = st.one_of(st.integers(), st.floats(), st.sampled_from(EXTREMES[:8]))
leaves = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.text(max_size=8),
    st.sampled_from(["\ud800", "\n", "sort"]),
)
documents = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
)


Draw = Callable[[st.SearchStrategy[Any]], Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    trained = train(tiny(steps=2), tmp_path_factory.mktemp("runs") / "run")
    scores = {5: Score(10, 3, 0.5), 7: Score(10, 2)}
    save_curve(trained.path, LengthCurve("run", "sort/tempered", "sort", "uniform", 0, 2, scores))
    return trained


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Any attempt to take much memory fails, and with it the test."""
    pages = (
        int(Path("/proc/self/statm").read_text().split()[0])
        if Path("/proc/self/statm").exists()
        else None
    )
    before = resource.getrlimit(resource.RLIMIT_AS)
    if pages is not None:
        resource.setrlimit(
            resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1])
        )
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def changed(draw: Draw, document: Any) -> Any:
    """The document with one place in it changed, dropped or added to."""
    if isinstance(document, dict) and document and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(document)))
        action = draw(st.integers(0, 9))
        if action == 0:
            return {k: v for k, v in document.items() if k != key}
        if action == 1:
            return {**document, draw(st.text(max_size=5)): draw(documents)}
        return {**document, key: changed(draw, document[key])}
    if isinstance(document, list) and document and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(document) - 1))
        return [*document[:place], changed(draw, document[place]), *document[place + 1 :]]
    return draw(documents)


def with_extremes(document: Any) -> Iterator[Any]:
    """The document with each of its places set to each extreme value in turn."""
    yield from EXTREMES
    if isinstance(document, dict):
        for key, value in document.items():
            yield from ({**document, key: other} for other in with_extremes(value))
    elif isinstance(document, list):
        for i, value in enumerate(document):
            yield from (
                [*document[:i], other, *document[i + 1 :]] for other in with_extremes(value)
            )


def spoilt(draw: Draw, data: bytes) -> bytes:
    """Bytes that are cut, flipped, replaced or anything."""
    place = draw(st.integers(0, len(data)))
    return draw(
        st.sampled_from(
            [
                data[:place],
                data[:place] + draw(st.binary(max_size=20)) + data[place + 5 :],
                data + draw(st.binary(max_size=20)),
                draw(st.binary(max_size=200)),
                b"[" * 100_000,
                b"9" * 5000,
            ]
        )
    )


@st.composite
def documents_like(draw: st.DrawFn, document: Any) -> bytes:
    if draw(st.booleans()):
        return json.dumps(changed(draw, document)).encode()
    return spoilt(draw, json.dumps(document).encode())


@given(data=st.data())
@MANY
def test_recipe(run: Run, data: st.DataObject) -> None:
    path = run.path.with_name("recipe")
    path.mkdir(exist_ok=True)
    (path / "recipe.json").write_bytes(data.draw(documents_like(run.recipe.to_json())))
    shutil.copytree(run.path / "checkpoints", path / "checkpoints", dirs_exist_ok=True)
    with suppress(UserError):
        loaded = load(path)
        loaded.recipe.fingerprint()
        loaded.recipe.update(5)
        weight_shapes(loaded.recipe)
        _ = loaded.model
    assert str(run.recipe) == str(Recipe.from_json(run.recipe.to_json()))


@pytest.mark.parametrize(
    "setting",
    [
        "model.width=1000000000000",
        "model.depth=1000000000",
        "task.symbols=1000000000",
        "main_updates=1000000000",
    ],
)
def test_a_huge_recipe_is_refused_before_memory_is_taken(run: Run, setting: str) -> None:
    with pytest.raises(UserError):
        run.recipe.with_settings([setting])


def test_a_model_larger_than_the_machine_is_refused(run: Run) -> None:
    large = run.recipe.with_settings(
        ["model.width=262144", "model.mlp_width=262144", "model.depth=1000"]
    )
    with pytest.raises(UserError, match=r"takes about .* GB are free"):
        new_decoder(large)


@given(data=st.data())
@MANY
def test_manifest_and_state(run: Run, data: st.DataObject) -> None:
    whole = run.checkpoints()[-1].path
    path = run.path.with_name("checkpoint") / whole.name
    shutil.copytree(whole, path, dirs_exist_ok=True)
    name = data.draw(st.sampled_from([MANIFEST, STATE]))
    (path / name).write_bytes(data.draw(documents_like(read_json(whole / name))))
    problem = Checkpoint(path).damage(run.recipe)
    assert problem is not None or (path / name).read_bytes() == (whole / name).read_bytes()
    with suppress(UserError):
        Checkpoint(path).state()
    with suppress(UserError):
        Checkpoint(path).tensors(WEIGHTS, weight_shapes(run.recipe))


@st.composite
def safetensors_like(draw: st.DrawFn, data: bytes) -> bytes:
    """A file with a header that claims anything."""
    (size,) = struct.unpack_from("<Q", data)
    if draw(st.booleans()):
        return spoilt(draw, data)
    header = json.dumps(changed(draw, json.loads(data[8 : 8 + size]))).encode()
    claimed = draw(st.sampled_from([len(header), 0, 2**40, 2**63, 2**64 - 1, len(header) + 1]))
    return struct.pack("<Q", claimed) + header + data[8 + size :]


@given(data=st.data())
@MANY
def test_safetensors(run: Run, data: st.DataObject) -> None:
    wanted = {"a": (torch.float32, (2, 3)), "b": (torch.float64, ())}
    whole = safetensors.torch.save(
        {"a": torch.ones(2, 3), "b": torch.tensor(1.0, dtype=torch.float64)}
    )
    path = run.path.with_name("file.safetensors")
    path.write_bytes(data.draw(safetensors_like(whole)))
    with suppress(UserError):
        tensors = read_tensors(path, wanted)
        assert {
            name: (value.dtype, tuple(value.shape)) for name, value in tensors.items()
        } == wanted


def test_a_safetensors_file_far_too_large_is_not_read(run: Run) -> None:
    path = run.path.with_name("large.safetensors")
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(UserError, match="larger than"):
        read_tensors(path, {"a": (torch.float32, (2, 3))})
    with pytest.raises(UserError, match="larger than"):
        read_json(path)


def test_every_place_of_every_document_takes_every_extreme(run: Run) -> None:
    (evaluation,) = (run.path / "evaluations").glob("step-*/*.json")
    loaders: dict[Path, Callable[[Any], object]] = {
        run.path / "recipe.json": lambda data: Recipe.from_json(data).fingerprint(),
        run.path / "environment.json": lambda data: conform(History, data, "file"),
        run.checkpoints()[-1].path / STATE: lambda data: conform(State, data, "file"),
        evaluation: lambda data: json_bytes(LengthCurve.from_json(data, "file").to_json()),
    }
    for path, load_document in loaders.items():
        for document in with_extremes(read_json(path)):
            try:
                load_document(document)
            except UserError as error:
                assert len(str(error)) < 1000


@given(data=st.data())
@FEW
def test_metrics(run: Run, data: st.DataObject) -> None:
    whole = (run.path / "metrics.jsonl").read_bytes()
    path = run.path.with_name("metrics.jsonl")
    path.write_bytes(spoilt(data.draw, whole))
    position = MetricsWritten(data.draw(st.integers(0, 2**62)), "0" * 64)
    with Metrics(path, position, step=data.draw(st.integers(0, 5))) as metrics:
        metrics.add(9, "sort", 1.0, 1.0, 1.0)
        end = metrics.sync()
    lines = path.read_bytes().splitlines()
    assert end.bytes == path.stat().st_size
    steps = [json.loads(line)["step"] for line in lines]
    assert steps == sorted(set(steps)) and steps[-1] == 9


@given(data=st.data())
@MANY
def test_evaluations(run: Run, data: st.DataObject) -> None:
    (whole,) = (run.path / "evaluations").glob("step-*/*.json")
    path = run.path.with_name("evaluated")
    (path / "evaluations" / "step-00000002").mkdir(parents=True, exist_ok=True)
    (path / "evaluations" / "step-00000002" / "uniform.json").write_bytes(
        data.draw(documents_like(read_json(whole)))
    )
    with suppress(UserError):
        for curve in load_curves(path):
            curve.to_json()
            assert all(0.0 <= score.accuracy <= 1.0 for score in curve.scores.values())
            assert all(
                math.isfinite(score.edit_distance or 0.0) for score in curve.scores.values()
            )


@given(data=st.data())
@MANY
def test_environment(run: Run, data: st.DataObject) -> None:
    path = run.path.with_name("environment.json")
    path.write_bytes(data.draw(documents_like(read_json(run.path / "environment.json"))))
    with suppress(UserError):
        read_history(path)
