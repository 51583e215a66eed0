"""The directory of an exported model: its tokenizer, its code, and the way back to a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from taskhint.cli import main
from taskhint.ecosystem.export import export_transformers, import_transformers
from taskhint.runs.run import load
from taskhint.system.errors import UserError
from tests.ecosystem.models import (
    EVERY_KIND,
    SORT,
    TWELVE,
    assert_near,
    loaded,
    logits_of,
    one_thread,
    run_named,
    sequences,
)

__all__ = ["one_thread"]


def test_the_tokenizer_writes_what_the_vocabulary_does(tmp_path: Path) -> None:
    run = run_named("plain", tmp_path / "run")
    model = loaded(run, tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    prompts = tokenizer(["3 1 2 ⊥", "5 ⊥"], padding=True, return_tensors="pt")
    assert prompts["input_ids"].tolist() == [[2, 0, 1, 12], [*[SORT.vocab.pad] * 2, 4, 12]]
    assert prompts["attention_mask"].tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    found = model.generate(**prompts, max_new_tokens=3, do_sample=False)
    assert tokenizer.decode(found[0, 4:]).split() == run.solve("3 1 2")
    with pytest.raises(ValueError, match="no symbol of this model"):
        model(**tokenizer(["3 13 ⊥"], return_tensors="pt"))


def files_in(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


@pytest.mark.parametrize("name", [*TWELVE, *EVERY_KIND, "constructed"])
def test_export_import_export_is_byte_identical(name: str, tmp_path: Path) -> None:
    run = run_named(name, tmp_path / "run")
    export_transformers(run, tmp_path / "model")
    back = import_transformers(tmp_path / "model", tmp_path / "back")
    assert back.recipe == run.recipe
    assert back.checkpoint.step == run.checkpoint.step
    export_transformers(back, tmp_path / "again")
    first, again = files_in(tmp_path / "model"), files_in(tmp_path / "again")
    assert first == again
    assert sorted(first) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "modeling_taskhint.py",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_a_model_that_transformers_changed_and_saved_becomes_a_run(tmp_path: Path) -> None:
    run = run_named("hinted", tmp_path / "run")
    model = loaded(run, tmp_path / "model")
    with torch.no_grad():
        model.blocks[0].attention.k.weight.mul_(2.0)
    model.save_pretrained(tmp_path / "changed")
    back = import_transformers(tmp_path / "changed", tmp_path / "back")
    before, after = (dict(each.model.named_parameters()) for each in (run, back))
    queries, keys, values = before["blocks.0.attention.qkv"].chunk(3)
    assert torch.equal(after["blocks.0.attention.qkv"], torch.cat([queries, 2.0 * keys, values]))
    different = [name for name in before if not torch.equal(before[name], after[name])]
    assert different == ["blocks.0.attention.qkv"]


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_named("tempered", tmp_path / "run")
    model, back = tmp_path / "model", tmp_path / "back"
    assert main(["export", str(run.path), "--format", "transformers", "--out", str(model)]) == 0
    assert "for transformers" in capsys.readouterr().out
    assert main(["import", str(model), "--out", str(back)]) == 0
    assert "7 updates" in capsys.readouterr().out
    assert load(back).solve("3 1 2") == run.solve("3 1 2")


def test_refusals_of_export_and_import(tmp_path: Path) -> None:
    run = run_named("plain", tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="not empty and holds no exported model"):
        export_transformers(run, tmp_path / "full")
    with pytest.raises(UserError, match=r"has no config\.json"):
        import_transformers(tmp_path / "full", tmp_path / "back")
    model = export_transformers(run, tmp_path / "model")
    with pytest.raises(UserError, match="the model of another recipe"):
        export_transformers(run_named("tempered", tmp_path / "other"), model)
    with pytest.raises(UserError, match="holds a run already"):  # with an optimiser's state
        import_transformers(model, run.path)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "qk_norm": True}))
    with pytest.raises(UserError, match="qk_norm is True, but the recipe there says False"):
        import_transformers(model, tmp_path / "back")
    (model / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(UserError, match="not of a model that taskhint exported"):
        import_transformers(model, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_scheme_of_a_user_s_own_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_named("tempered", tmp_path / "run")
    monkeypatch.setattr("taskhint.ecosystem.export.TEMPERATURES", frozenset(["constant"]))
    with pytest.raises(UserError, match=r"temperature=log-visible is your own.*constant"):
        export_transformers(run, tmp_path / "model")
    assert not (tmp_path / "model").exists()


WITHOUT_TASKHINT = """
import json, sys
sys.modules["taskhint"] = None  # importing it fails, as where it is not installed
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
for path in sys.argv[1:]:
    model = AutoModelForCausalLM.from_pretrained(path, trust_remote_code=True)
    tokens = torch.tensor(json.load(open(path + "/tokens.json")))
    with torch.no_grad():
        logits = model(tokens).logits.tolist()
    json.dump([type(model).__module__, logits], open(path + "/logits.json", "w"))
"""


def test_the_one_file_of_code_is_enough_without_taskhint(tmp_path: Path) -> None:
    runs = {name: run_named(name, tmp_path / name) for name in ("t5", "coupling", "constructed")}
    paths = []
    for name, run in runs.items():
        path = export_transformers(run, tmp_path / f"{name}-model")
        tokens = sequences(run.task, (5,))
        (path / "tokens.json").write_text(json.dumps(tokens))
        paths.append(path)
    surroundings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    surroundings |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    subprocess.run(
        [sys.executable, "-c", WITHOUT_TASKHINT, *map(str, paths)],
        check=True,
        cwd=tmp_path,
        env=surroundings,
    )
    for path, run in zip(paths, runs.values(), strict=True):
        module, logits = json.loads((path / "logits.json").read_text())
        assert module.startswith("transformers_modules.")
        for row, found in zip(json.loads((path / "tokens.json").read_text()), logits, strict=True):
            wanted = logits_of(run, row, run.task.kind)
            assert_near(torch.tensor(found, dtype=wanted.dtype), wanted)
