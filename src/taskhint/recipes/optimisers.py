"""Adam, and Muon in float32 for matrices with Adam for the rest.

This file needs no torch until a model is trained, so that recipes can be read without it.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from taskhint.system.settings import Family, setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Parameter

StackWork = Callable[["Tensor"], "Tensor"]
"""(n, rows, columns) -> the same shape, each matrix by itself."""

Divide = Callable[[StackWork], StackWork]
"""The same work, done by several processes together."""

ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


class Model(Protocol):
    """What an optimiser asks of a decoder."""

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]: ...

    def matrices(self) -> dict[str, int]:
        """The maps inside the blocks by name, and how many of them are stacked in one tensor."""
        ...


class Stepper(Protocol):
    """An optimiser at work on a model."""

    def step(self, factor: float) -> None:
        """Apply the gradients with `factor` times the learning rate, and clear them. Weights
        without one stay put.
        """

    def state(self) -> dict[str, Tensor]:
        """Everything that a checkpoint must keep, by name; all of it from the beginning on."""
        ...

    def load(self, state: Mapping[str, Tensor]) -> None: ...


@runtime_checkable
class Divisible(Protocol):
    """An optimiser at work whose work several processes can share."""

    def divide(self, among: Divide) -> None: ...


@dataclass(frozen=True)
class Optimiser(Family):
    """Derive from it, name a `kind`, and return one of torch's optimisers, or one of your own,
    from `torch_optimiser`.

    Its learning rates are multiplied by the schedule of the recipe. Its state begins with zeros.
    """

    family: ClassVar[str] = "optimiser"
    label: ClassVar[str] = "optimiser"

    @abstractmethod
    def torch_optimiser(
        self, named: Mapping[str, Parameter], learning_rate: float
    ) -> torch.optim.Optimizer: ...

    def at_work(self, model: Model, learning_rate: float) -> Stepper:
        named = dict(model.named_parameters())
        return TorchStepper(named, self.torch_optimiser(named, learning_rate))


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam for every weight, with decoupled weight decay on the matrices."""

    kind: ClassVar[str] = "adam"

    beta1: float = setting(0.9, at_least=0, at_most=1)
    beta2: float = setting(0.999, at_least=0, at_most=1)
    weight_decay: float = setting(0.0, at_least=0)

    def torch_optimiser(
        self, named: Mapping[str, Parameter], learning_rate: float
    ) -> torch.optim.Optimizer:
        import torch

        decayed = [value for value in named.values() if value.dim() == 2]
        others = [value for value in named.values() if value.dim() != 2]
        groups = [
            {"params": decayed, "weight_decay": self.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            groups, lr=learning_rate, betas=(self.beta1, self.beta2), fused=True
        )

    def at_work(self, model: Model, learning_rate: float) -> Stepper:
        named = dict(model.named_parameters())
        return AdamStepper(named, self.torch_optimiser(named, learning_rate), learning_rate)


@dataclass(frozen=True)
class Muon(Optimiser):
    """Orthogonalised momentum for the matrices inside the blocks; Adam at `rest_rate` for all
    other weights.

    The recipe's learning rate is that of the matrices. Weight decay is decoupled and touches the
    matrices only.
    """

    kind: ClassVar[str] = "muon"

    momentum: float = setting(0.9, at_least=0, at_most=1)
    rest_rate: float = setting(0.01, at_least=0)
    weight_decay: float = setting(0.1, at_least=0)

    def torch_optimiser(
        self, named: Mapping[str, Parameter], learning_rate: float
    ) -> torch.optim.Optimizer:
        """Of the weights that are not matrices inside the blocks."""
        import torch

        return torch.optim.AdamW(named.values(), lr=learning_rate, weight_decay=0.0, fused=True)

    def at_work(self, model: Model, learning_rate: float) -> Stepper:
        stacked, named = model.matrices(), dict(model.named_parameters())
        rest = {name: value for name, value in named.items() if name not in stacked}
        adam = AdamStepper(rest, self.torch_optimiser(rest, self.rest_rate), self.rest_rate)
        matrices = {name: value for name, value in named.items() if name in stacked}
        return MuonStepper(self, matrices, stacked, adam, learning_rate)


class AdamStepper:
    def __init__(
        self, named: Mapping[str, Parameter], adam: torch.optim.Optimizer, rate: float
    ) -> None:
        import torch

        self._named, self._adam, self._rate = named, adam, rate
        for value in (
            named.values()
        ):  # torch would make these at the first step; a head may wait for its turn
            zeros = {"exp_avg": torch.zeros_like(value), "exp_avg_sq": torch.zeros_like(value)}
            self._adam.state[value] = {"step": torch.zeros((), device=value.device), **zeros}

    def step(self, factor: float) -> None:
        for group in self._adam.param_groups:
            group["lr"] = factor * self._rate
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        return {
            f"adam.{part}.{name}": tensor
            for name, value in self._named.items()
            for part, tensor in self._adam.state[value].items()
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        for name, value in self._named.items():
            self._adam.state[value] = {
                part: state[f"adam.{part}.{name}"].to(value.device).clone() for part in ADAM_STATE
            }


class MuonStepper:
    """Momentum for the matrices. Those of one shape are orthogonalised together; query, key and
    value maps apart.
    """

    def __init__(
        self,
        settings: Muon,
        matrices: Mapping[str, Parameter],
        stacked: Mapping[str, int],
        rest: AdamStepper,
        rate: float,
    ) -> None:
        import torch

        self._settings, self._matrices, self._stacked = settings, matrices, stacked
        self._rest, self._rate = rest, rate
        self._momentum = {name: torch.zeros_like(value) for name, value in matrices.items()}
        self._orthogonalise: StackWork = orthogonalise

    def divide(self, among: Divide) -> None:
        self._orthogonalise = among(orthogonalise)

    def step(self, factor: float) -> None:
        import torch

        self._rest.step(factor)
        with torch.no_grad():
            self._step_matrices(factor * self._rate)

    def _step_matrices(self, rate: float) -> None:
        import torch

        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for name, value in self._matrices.items():
            assert value.grad is not None
            momentum, count = self._momentum[name], self._stacked[name]
            momentum.lerp_(value.grad, 1.0 - self._settings.momentum)
            direction = value.grad.lerp(momentum, self._settings.momentum)
            for weight, part in zip(value.chunk(count), direction.chunk(count), strict=True):
                by_shape[tuple(part.shape)].append((weight, part))
            value.mul_(1.0 - rate * self._settings.weight_decay)
            value.grad = None
        for (rows, columns), pairs in by_shape.items():
            stack = torch.stack([part if rows <= columns else part.mT for _, part in pairs])
            size = rate * math.sqrt(max(1.0, rows / columns))
            for (weight, _), update in zip(pairs, self._orthogonalise(stack), strict=True):
                weight.sub_(update if rows <= columns else update.mT, alpha=size)

    def state(self) -> dict[str, Tensor]:
        return self._rest.state() | {
            f"muon.momentum.{name}": value for name, value in self._momentum.items()
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        self._rest.load(state)
        for name, value in self._momentum.items():
            value.copy_(state[f"muon.momentum.{name}"])


def orthogonalise(matrices: Tensor) -> Tensor:
    """(n, rows, columns), rows <= columns: nearly the closest matrices with orthonormal rows.

    Five Newton-Schulz turns. The coefficients push every singular value fast into about 0.7..1.2,
    not exactly to 1. Float32 throughout: bfloat16 is several times slower on processors that lack
    it.
    """
    import torch

    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


class TorchStepper:
    """Any of torch's optimisers. What its state holds is found by a step on a copy."""

    def __init__(self, named: Mapping[str, Parameter], optimiser: torch.optim.Optimizer) -> None:
        self._named, self._optimiser = named, optimiser
        self._rates = [group["lr"] for group in optimiser.param_groups]
        self._layout = self._found_layout()
        for value, parts in self._layout.items():
            optimiser.state[value] = {part: tensor.clone() for part, tensor in parts.items()}

    def _found_layout(self) -> dict[Parameter, dict[str, Tensor]]:
        import torch

        trial = copy.deepcopy(self._optimiser)
        mine = [value for group in self._optimiser.param_groups for value in group["params"]]
        copies = [value for group in trial.param_groups for value in group["params"]]
        for value in copies:
            value.grad = torch.zeros_like(value)
        trial.step()
        return {
            value: {
                part: torch.zeros_like(x)
                for part, x in trial.state[other].items()
                if torch.is_tensor(x)
            }
            for value, other in zip(mine, copies, strict=True)
        }

    def step(self, factor: float) -> None:
        for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = factor * rate
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        return {
            f"{part}.{name}": self._optimiser.state[value][part]
            for name, value in self._named.items()
            for part in self._layout.get(value, ())
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        for name, value in self._named.items():
            for part in self._layout.get(value, ()):
                self._optimiser.state[value][part] = (
                    state[f"{part}.{name}"].to(value.device).clone()
                )
