"""What a probe is: it looks at traced sequences, keeps labelled numbers, and draws them.

One file per probe holds its numbers, its figures and what a reader has to know of them. A class
that derives from `Probe` and names its `kind` is registered by that; a probe of one's own needs
`rows` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from taskhint.probe.shares import draw_means, means_of
from taskhint.probe.traced import Rows, RowsByLength, Subject, Traced
from taskhint.system.drawing import (
    legend_below,
    mark_training,
    new_figure,
    tidy,
)
from taskhint.system.errors import UserError
from taskhint.system.settings import Family

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class About:
    """Which run was probed, and on how many sequences of each length."""

    name: str
    recipe: str
    task: str
    seed: int
    step: int
    trained_up_to: int | None  # None if nothing was trained
    temperature: str
    examples: int
    precision: str  # with which the model computed


@dataclass(frozen=True)
class Looked:
    """What a probe has to go by. `rows` are those that it kept itself, by length."""

    subject: Subject
    prompt: list[int]  # one input to look at token by token
    lengths: tuple[int, ...]
    examples: int
    rows: RowsByLength


@dataclass(frozen=True)
class Table:
    """A cell is its text, and smaller lines below it."""

    header: list[str]
    rows: list[list[tuple[str, ...]]]


@dataclass(frozen=True)
class Shown:
    """A figure with its file name, its heading and how to read it."""

    name: str
    title: str
    caption: str
    figure: Figure
    table: Table | None = None


@dataclass(frozen=True)
class Excerpt:
    """What a comparison shows of one run: named parts, from every probe that compares."""

    about: About
    parts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Runs of one task, in the order in which they were given."""

    task: str
    examples: int
    runs: tuple[Excerpt, ...]

    @property
    def trained_up_to(self) -> int | None:
        """The longest length that any of the runs was trained on."""
        known = (run.about.trained_up_to for run in self.runs)
        return max((longest for longest in known if longest is not None), default=None)


@dataclass(frozen=True)
class Probe(Family):
    """A labelled look into a model. Derive, name a `kind`, give a title and a caption, and say
    what is kept.

    `rows` is asked once for every trace of equally long sequences. `result` turns the rows of all
    of them into numbers: dataclasses, dictionaries, arrays, which go to probe.json under `kind`.
    `draw` shows them. Without its own `result` and `draw` a probe that keeps one number per
    sequence and name gets means with intervals, and a line by length for each name.
    """

    family: ClassVar[str] = "probe"
    title: ClassVar[str] = ""
    caption: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if cls.__dict__.get("kind") in About.__dataclass_fields__:
            raise UserError(
                f"class {cls.__name__}: a probe cannot be called {cls.kind!r}; choose another kind"
            )
        super().__init_subclass__()

    def has_meaning(self, subject: Subject) -> bool:  # noqa: ARG002
        """Whether the subject's task and model have what this probe looks at."""
        return True

    def rows(self, traced: Traced) -> Rows:  # noqa: ARG002
        """What is kept of each sequence: (B, ...) arrays by name."""
        return {}

    def result(self, looked: Looked) -> Any:
        """The numbers. Here: the mean of each kind of row by length, with its interval."""
        names = dict.fromkeys(name for rows in looked.rows.values() for name in rows)
        return {
            name: {n: means_of(rows[name]) for n, rows in looked.rows.items() if name in rows}
            for name in names
        }

    def draw(self, found: Any, about: About) -> list[Shown]:
        """The figures. Here: a line by length for each name."""
        figure = new_figure(7, 4.3)
        panel: Any = figure.subplots()
        for number, (name, means) in enumerate(found.items()):
            if any(mean.mean.ndim for mean in means.values()):
                raise UserError(
                    f"probe {self.kind!r} keeps several numbers of a sequence as {name!r}; give "
                    "it a `draw` of its own, or a name to each number"
                )
            draw_means(panel, means, number, name)
        tidy(panel, "", "input length", self.title or self.kind)
        mark_training(panel, about.trained_up_to)
        panel.set_xlim(left=0)
        legend_below(figure, [panel], 4)
        return [Shown(self.kind, self.title or self.kind, self.caption, figure)]

    def excerpt(self, found: Any) -> dict[str, Any]:  # noqa: ARG002
        """What of the numbers goes into a comparison of runs, by name. Here: nothing."""
        return {}

    def draw_compared(self, comparison: Comparison) -> list[Shown]:  # noqa: ARG002
        """Figures with several runs of one task."""
        return []
