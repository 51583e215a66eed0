"""What the tests of reliability share: a run that takes a blink, and what must be the same after
any interruption.

Started as a program it is the one that kills: it forks trainings and ends them with SIGKILL, at
random moments or at the k-th file operation. torch is imported once, and with one thread there is
nothing to go wrong in a fork.

    python -m tests.runs.reliability moments DIR COUNT   how often it killed, which runs differ
    python -m tests.runs.reliability operations DIR
    python -m tests.runs.reliability limited DIR BYTES   goes on, with a limit on file sizes
    python -m tests.runs.reliability read-only DIR       goes on, without permission to write
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from taskhint.cli import main
from taskhint.model.config import ModelConfig
from taskhint.model.softmax import LogVisible
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import Recipe

OPERATIONS = (
    "open",
    "write",
    "fsync",
    "replace",
    "rename",
    "mkdir",
    "unlink",
    "rmdir",
    "truncate",
    "ftruncate",
)


def tiny(**changes: Any) -> Recipe:
    recipe = find_recipe("sort/successor-tempered").with_steps(12)
    model = ModelConfig(width=16, heads=2, mlp_width=32, depth=1, temperature=LogVisible())
    few = replace(recipe, model=model, batch_size=8, checkpoint_every=4, log_every=1)
    return replace(few, **changes)


def command(out: Path, recipe: Recipe) -> list[str]:
    """The arguments of `taskhint` that train a tiny recipe."""
    model = {
        name: getattr(recipe.model, name) for name in ("width", "heads", "mlp_width", "depth")
    }
    settings = {f"model.{name}": value for name, value in model.items()}
    settings |= {
        name: getattr(recipe, name) for name in ("batch_size", "checkpoint_every", "log_every")
    }
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    return ["train", recipe.name, "--out", str(out), "--steps", str(recipe.steps), *given]


def contents(run: Path) -> dict[str, str]:
    """Every file of a run that an interruption must not change, with its SHA-256."""
    files = [
        path
        for path in run.rglob("*")
        if path.is_file() and path.name not in (".lock", "environment.json")
    ]
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def forked(work: Callable[[], object]) -> int:
    """The id of a new process that does this work; it ends with 1 if that fails."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def train_into(out: Path, recipe: Recipe) -> None:
    from taskhint.training.loop import train

    train(recipe, out)


def kill_at_moments(directory: Path, count: int) -> dict[str, Any]:
    recipe = tiny(steps=40, checkpoint_every=6)
    begin = time.monotonic()
    assert ended(forked(partial(train_into, directory / "whole", recipe))) == 0
    duration, expected = time.monotonic() - begin, contents(directory / "whole")
    moments = random.Random(0)
    killed: list[float] = []
    different: list[float] = []
    while len(killed) < count:
        moment = moments.uniform(0, duration)
        out = directory / f"killed-{moment:.6f}"
        train = partial(train_into, out, recipe)
        child = forked(train)
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        if ended(child) != -signal.SIGKILL:
            continue  # it was faster than the first one and had finished
        killed.append(moment)
        if ended(forked(train)) != 0 or contents(out) != expected:
            different.append(moment)
    return {"killed": killed, "different": different}


def kill_at_operations(directory: Path) -> dict[str, Any]:
    recipe = tiny(steps=4, checkpoint_every=2, keep_checkpoints=1)
    assert ended(forked(partial(_train_counted, directory / "whole", recipe, 0))) == 0
    expected = contents(directory / "whole")
    operations = (directory / "whole.operations").read_text().splitlines()
    different = []
    for number, operation in enumerate(operations, start=1):
        out = directory / f"killed-{number}"
        was_killed = ended(forked(partial(_train_counted, out, recipe, number))) == -signal.SIGKILL
        went_on = ended(forked(partial(train_into, out, recipe))) == 0
        if not (was_killed and went_on and contents(out) == expected):
            different.append(operation)
    return {"operations": operations, "different": different}


def _train_counted(out: Path, recipe: Recipe, deadly: int) -> None:
    """Train; die at file operation number `deadly`. Half of what a write writes is an operation of
    its own.
    """
    seen: list[str] = []
    plain = {name: getattr(os, name) for name in OPERATIONS}

    def note(text: str) -> bool:
        seen.append(text)
        return len(seen) == deadly

    def watched(name: str) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            if note(f"{name} {_target(arguments[0], out)}"):
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "write" and note(f"half of a write {_target(arguments[0], out)}"):
                plain["write"](arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return plain[name](*arguments, **named)

        return operation

    for name in OPERATIONS:
        setattr(os, name, watched(name))
    train_into(out, recipe)
    for name, function in plain.items():
        setattr(os, name, function)
    out.with_suffix(".operations").write_text("".join(f"{line}\n" for line in seen))


def _target(what: Any, out: Path) -> str:
    """The file of an operation, without what differs from one process to the next."""
    path = (
        Path(f"/proc/self/fd/{what}").readlink()
        if isinstance(what, int)
        else Path(os.fspath(what))
    )
    text = str(path.relative_to(out.parent)) if path.is_relative_to(out.parent) else path.name
    return text.replace(str(os.getpid()), "PID").replace(out.name, "run", 1)


def train_limited(out: Path, limit: int) -> int:
    """`taskhint train` where no file may grow beyond `limit` bytes."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return main(command(out, tiny()))


def train_read_only(out: Path) -> int:
    """`taskhint train` where the directories of a run cannot be written. root can write anywhere,
    so it steps down.
    """
    train_into(
        out.with_name("first"), tiny()
    )  # nothing may be left to load when the privileges are gone
    os.chdir(out.parent)
    folders = [path for path in (out, *out.rglob("*")) if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    child = forked(lambda: _exit_with(_train_as_nobody(Path(out.name))))
    code = ended(child)
    for path in folders:
        path.chmod(0o755)
    return code


def _train_as_nobody(out: Path) -> int:
    if os.geteuid() == 0:
        for path in (out, *out.rglob("*")):
            os.chown(path, 65534, 65534)
        Path().chmod(0o755)
        os.setgid(65534)
        os.setuid(65534)
    return main(command(out, tiny()))


def _exit_with(code: int) -> None:
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    what, place, *rest = sys.argv[1:]
    if what == "limited":
        sys.exit(train_limited(Path(place), int(rest[0])))
    if what == "read-only":
        sys.exit(train_read_only(Path(place)))
    train_into(
        Path(place) / "first", tiny()
    )  # loads all that torch loads late, so that each fork begins at once
    result = (
        kill_at_moments(Path(place), int(rest[0]))
        if what == "moments"
        else kill_at_operations(Path(place))
    )
    print(json.dumps(result))
