"""Settings refuse numbers outside their ranges, and classes that files could not name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import taskhint as th
from taskhint.model.positions import Rope
from taskhint.system.settings import Settings
from taskhint.tasks import Sort


@dataclass(frozen=True)
class Ranged(Settings):
    label: ClassVar[str] = "ranged"

    share: float = th.setting(0.5, above=0, at_most=1)
    count: int = th.setting(3, at_least=1)
    both: int | None = th.setting(None, at_least=-2, at_most=2)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"share": 0.0}, "ranged.share=0.0 is not above 0 and at most 1"),
        ({"share": 1.1}, "ranged.share=1.1 is not above 0 and at most 1"),
        ({"share": float("nan")}, "ranged.share=nan is not a number"),
        ({"count": 0}, "ranged.count=0 is not at least 1"),
        ({"both": 3}, "ranged.both=3 is not in -2..2"),
        ({"both": -3}, "ranged.both=-3 is not in -2..2"),
    ],
)
def test_a_number_outside_its_range_is_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(th.UserError) as refused:
        Ranged(**values)
    assert str(refused.value) == problem


def test_the_ends_of_a_range_are_inside() -> None:
    made = Ranged(share=1, count=1, both=-2)
    assert (made.share, made.count, made.both) == (1.0, 1, -2)
    assert Ranged(both=None).both is None


def test_a_class_that_derives_keeps_the_range_of_a_field_that_it_changes() -> None:
    @dataclass(frozen=True)
    class More(Ranged):
        count: int = 7

    assert More().count == 7
    with pytest.raises(th.UserError, match="count=0 is not at least 1"):
        More(count=0)


def test_a_check_of_ones_own_may_call_that_of_the_base_class() -> None:
    @dataclass(frozen=True)
    class Even(Ranged):
        def __post_init__(self) -> None:
            super().__post_init__()
            if self.count % 2:
                raise th.UserError(f"count={self.count} is odd")

    assert Even(count=2).count == 2
    with pytest.raises(th.UserError, match="count=3 is odd"):
        Even()


@pytest.mark.parametrize("base", [Sort, Rope])
def test_a_class_without_a_kind_of_its_own_is_not_taken_for_its_parent(base: type) -> None:
    @dataclass(frozen=True)
    class Mine(base):  # type: ignore[misc]
        pass

    with pytest.raises(th.UserError) as refused:
        Mine()
    text = str(refused.value)
    assert text.startswith("class Mine names no kind of its own") and "\n" not in text
    assert f'"my-{base.kind}"' in text  # type: ignore[attr-defined]
