"""One run on many devices: `torchrun --nproc-per-node N -m taskhint train ...`.

Every process makes the whole batch of an update and takes every N-th example of it, so update t
has the same examples for every N. Gradients are summed over the processes and divided by the
number of scored tokens of all. The first process alone touches the run directory; what it read
there it sends to the others, so that all go on from the same numbers, and a run can go on with
another N.

Shapes: E examples, N tokens, M tail positions, S scored ones.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from taskhint.data.batch import Batch, Group
from taskhint.recipes.recipe import Recipe
from taskhint.system.devices import processes
from taskhint.system.errors import LostTeamError, MachineError, UserError, tell
from taskhint.system.memory import memory_errors

PATIENCE = timedelta(minutes=30)  # how long a process waits for the others
FIRST_TURN = 2.0  # seconds in which the first process, which knows what was saved, can tell
_TEAMS = itertools.count()  # a script can train one run after another
STOPS = (signal.SIGINT, signal.SIGTERM)


class Team:
    """The processes that torchrun started, seen from one of them."""

    def __init__(self, rank: int, size: int, device: torch.device, store: Store) -> None:
        self.rank, self.size, self.device, self._store = rank, size, device, store
        self.stopped: int | None = None  # the signal that one of the processes got

    @property
    def leads(self) -> bool:
        """Whether this process reads and writes the run directory."""
        return self.rank == 0

    def part(self, batch: Batch) -> Batch:
        return part_of(batch, self.rank, self.size)

    def exchange(self, model: nn.Module, loss: Tensor, scored: int, stop: int | None) -> Tensor:
        """The mean loss over the scored tokens of all processes; gradients become those of it.

        A signal that one process got is known to all of them afterwards.
        """
        moved = [value for value in model.parameters() if value.grad is not None]
        signals = [float(stop == number) for number in STOPS]
        rest = loss.new_tensor([scored, *signals])
        gradients = [value.grad.flatten() for value in moved if value.grad is not None]
        flat = torch.cat([*gradients, loss.detach().view(1), rest])
        with _lost():
            dist.all_reduce(flat)
        sums, (total, *asked) = flat[: -len(rest)], flat[-len(rest) :].tolist()
        sums /= total
        for value, gradient in zip(
            moved, sums[:-1].split([v.numel() for v in moved]), strict=True
        ):
            value.grad = gradient.view_as(value)
        self.stopped = next((n for n, a in zip(STOPS, asked, strict=True) if a), None)
        return sums[-1]

    def divided(self, work: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """Work on a stack of n matrices, of which each process does its share for all.

        Weights are changing by then. Whoever is left alone does it all, so that they are whole.
        """

        def each(stack: Tensor) -> Tensor:
            size = -(-len(stack) // self.size)
            mine = stack[self.rank * size : (self.rank + 1) * size]
            done = stack.new_zeros(size, *stack.shape[1:])
            if len(mine):
                done[: len(mine)] = work(mine)
            parts = [torch.empty_like(done) for _ in range(self.size)]
            try:
                with _lost():
                    dist.all_gather(parts, done)
            except LostTeamError:
                return work(stack)
            return torch.cat(parts)[: len(stack)]

        return each

    def share(self, start: int, tensors: Mapping[str, Tensor]) -> int:
        """The first process's step and tensors, for all."""
        step = torch.tensor([start], device=self.device)
        with _lost(), torch.no_grad():
            dist.broadcast(step, src=0)
            for value in tensors.values():
                dist.broadcast(value, src=0)
        return int(step)

    def wait(self) -> None:
        """Until all processes are here."""
        with _lost():
            dist.all_reduce(torch.zeros(1, device=self.device))

    def tells_first(self, error: Exception) -> bool:
        """Whether no other process has told yet why the training ends."""
        if isinstance(error, LostTeamError) and not self.leads:
            time.sleep(FIRST_TURN)
        try:
            return self._store.add("told", 1) == 1
        except RuntimeError:  # who kept the store is gone too
            return True


@contextmanager
def _lost() -> Iterator[None]:
    """What the other processes' end does to a message becomes one error."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise LostTeamError("another process of this training ended") from error


@contextmanager
def told_once(team: Team) -> Iterator[None]:
    """Of the processes of a team that an error ends, the first one tells it.

    At once: torchrun ends the others, and they may not come to it later.
    """
    try:
        with memory_errors():
            yield
    except Exception as error:
        first = team.tells_first(error)
        if isinstance(error, UserError):
            error.told = True
            if first:
                tell(f"error: {error}")
        raise


@contextmanager
def joined(recipe: Recipe, device: torch.device) -> Iterator[Team]:
    """The team of this process, of which torchrun started several."""
    size = processes()
    _check(recipe, device, size)
    begun = dist.is_initialized()  # by the script that torchrun started
    try:
        store, rank, _ = next(rendezvous("env://", timeout=PATIENCE))
        store = PrefixStore(f"taskhint-{_attempt()}-{next(_TEAMS)}", store)
        if not begun:
            _begin(device, store, rank, size)
    except (RuntimeError, ValueError) as error:
        told = str(error).splitlines()[0][:100]
        raise MachineError(f"the processes of torchrun do not find each other: {told}") from None
    yield Team(rank, size, device, store)
    if not begun:
        dist.destroy_process_group()  # not after an error: it could wait for the others for long


def _attempt() -> str:
    """How often torchrun started this job again: its store still has the keys of before."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def _begin(device: torch.device, store: Store, rank: int, size: int) -> None:
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _check(recipe: Recipe, device: torch.device, size: int) -> None:
    if size > recipe.batch_size:
        raise UserError(
            f"batch_size={recipe.batch_size} is less than {size} processes; use fewer of them"
        )
    if device.type == "mps":
        raise UserError("device mps is for one process; without torchrun, or with --device cpu")


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """Every `size`-th example from number `rank` on. Equally long ones stand together, so that
    all parts are about as much work.
    """
    lengths, tails = _per_example(batch.groups)
    mine = np.arange(len(lengths)) % size == rank
    tokens, tail = (torch.from_numpy(np.repeat(mine, of)) for of in (lengths, tails))
    scored = batch.scored
    asked = tail if scored is None else tail[scored]
    if scored is not None:
        scored = (tail.cumsum(0) - 1)[scored[asked]]
    return replace(
        batch,
        groups=_kept(batch.groups, mine),
        tokens=batch.tokens[tokens],
        inputs=batch.inputs[tokens],
        targets=batch.targets[asked],
        scored=scored,
        rows=batch.rows[mine],
        ids=None if batch.ids is None else batch.ids[tokens],
        next_ids=None if batch.next_ids is None else batch.next_ids[tokens],
    )


def _per_example(groups: Sequence[Group]) -> tuple[np.ndarray, np.ndarray]:
    """(E,) tokens and tail positions of each example."""
    counts = [group.count for group in groups]
    lengths, tails = [group.length for group in groups], [group.tail for group in groups]
    return np.repeat(lengths, counts), np.repeat(tails, counts)


def _kept(groups: Sequence[Group], mine: np.ndarray) -> tuple[Group, ...]:
    ends = np.cumsum([group.count for group in groups])[:-1]
    counts = [int(part.sum()) for part in np.split(mine, ends)]
    both = zip(groups, counts, strict=True)
    return tuple(replace(group, count=count) for group, count in both if count)
