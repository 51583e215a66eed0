"""The peers' own protocols: their task, lengths and test, their methods as arms of ours, and their
published numbers beside them.

Every arm makes as many updates of as many sequences, so that arms of one depth make equally many
products; our model of depth 4 is there twice, with half of the updates (equal cost) and with all
of them. The peers' methods have no weight decay, as the first peer trains them, and draw their
inputs as the peer does. Our recipe draws denser inputs of the same lengths; one arm shows it on
the peer's inputs. Nothing longer than the protocol's training lengths is trained on or selects
anything; every seed counts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, Better
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.experiments.quantity import ACCURACY, BandAccuracy
from taskhint.model.positions import LearnedOffset
from taskhint.model.softmax import Adaptive, Entmax15, SSMax
from taskhint.recipes import find_recipe
from taskhint.recipes.optimisers import Muon
from taskhint.recipes.sort import RICH
from taskhint.tasks import Distinct, DistinctNear, Sort
from taskhint.tasks.inputs import UNIFORM
from taskhint.tasks.lengths import EvenLengths

UPDATES, BATCH = 3000, 64
DEEP = 4
THEIRS, OURS = "sort/standard", "sort/best"


def arm(protocol: str, task: Sort, base: str, label: str, what: str, **changes: Any) -> Arm:
    """A recipe on the protocol's task, with the budget that all have."""
    steps = changes.pop("steps", UPDATES)
    recipe = find_recipe(base).change(task=task, batch_size=BATCH, steps=steps, **changes)
    return Arm(label, recipe, f"{protocol}-{what}")


def theirs(protocol: str, task: Sort, label: str, what: str, decay: float, **changes: Any) -> Arm:
    optimiser = Muon(weight_decay=decay)
    return arm(protocol, task, THEIRS, label, what, optimiser=optimiser, **changes)


def ours(protocol: str, task: Sort, peers_task: Sort) -> tuple[Arm, ...]:
    """sort/best as it is, deeper, and on the peer's inputs."""
    make = partial(arm, protocol, task, OURS)
    return (
        make("sort/best", "best"),
        make(
            f"sort/best, depth {DEEP}, equal cost",
            "best-deep-half",
            depth=DEEP,
            steps=UPDATES // 2,
        ),
        make(f"sort/best, depth {DEEP}, equal updates", "best-deep", depth=DEEP),
        arm(protocol, peers_task, OURS, "sort/best on the peer's inputs", "best-their-inputs"),
    )


# ASEntmax: Vasylenko et al., ICLR 2026
AT_64_TO_512 = (32, 64, 128, 256, 512)
ASENTMAX_TASK = Sort(lengths=EvenLengths(32, 64), symbols=32, inputs=UNIFORM)
_asentmax = partial(theirs, "peer-asentmax", ASENTMAX_TASK)
SOFTMAX = _asentmax("softmax", "softmax", 0.0)
SSMAX = _asentmax("SSMax per head", "ssmax", 0.0, temperature=SSMax())
ENTMAX = _asentmax("entmax-1.5", "entmax", 0.0, normaliser=Entmax15())
ASENTMAX = _asentmax("ASEntmax", "asentmax", 0.0, temperature=Adaptive(), normaliser=Entmax15())
ASENTMAX_DECAY = _asentmax(
    "ASEntmax, weight decay 0.1",
    "asentmax-decay",
    0.1,
    temperature=Adaptive(),
    normaliser=Entmax15(),
)
ASENTMAX_PEERS = (SOFTMAX, SSMAX, ENTMAX, ASENTMAX, ASENTMAX_DECAY)
ASENTMAX_OURS = ours(
    "peer-asentmax", Sort(lengths=EvenLengths(32, 64), symbols=32, inputs=RICH), ASENTMAX_TASK
)

# Huang et al., ICLR 2025; their code is lacoco-lab/length_generalization
BANDS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150)
BAND = BandAccuracy()
LACOCO_TASK = Sort(lengths=EvenLengths(1, 50), symbols=150, inputs=Distinct())
MOST_TOKENS = 2 * 150 + 1  # an input of 150 symbols, ⊥, and its answer
_lacoco = partial(theirs, "peer-lacoco-sort", LACOCO_TASK)
NOPE = _lacoco("softmax, no positions", "softmax", 0.0)
OFFSET = _lacoco(
    "learned positions, random offset", "offset", 0.0, positions=LearnedOffset(MOST_TOKENS)
)
OFFSET_DECAY = _lacoco(
    "learned positions, random offset, weight decay 0.1",
    "offset-decay",
    0.1,
    positions=LearnedOffset(MOST_TOKENS),
)
LACOCO_PEERS = (
    NOPE,
    OFFSET,
    OFFSET_DECAY,
    _lacoco("SSMax per head", "ssmax", 0.0, temperature=SSMax()),
    _lacoco("entmax-1.5", "entmax", 0.0, normaliser=Entmax15()),
    _lacoco("ASEntmax", "asentmax", 0.0, temperature=Adaptive(), normaliser=Entmax15()),
)
LACOCO_OURS = ours(
    "peer-lacoco-sort",
    Sort(lengths=EvenLengths(1, 50), symbols=150, inputs=DistinctNear()),
    LACOCO_TASK,
)


def best_of_ours(arms: tuple[Arm, ...]) -> tuple[Arm, Arm]:
    """The arms that claims are made of: of the usual depth, and deeper at equal cost."""
    return arms[0], arms[1]


EXPERIMENTS = (
    Experiment(
        name="peer-asentmax",
        question="Does sort/best go further than ASEntmax on the protocol of that paper?",
        arms=(*ASENTMAX_PEERS, *ASENTMAX_OURS),
        lengths=AT_64_TO_512,
        claims=(
            *(AtLeast(one, 256, 99) for one in best_of_ours(ASENTMAX_OURS)),
            *(AtLeast(one, 512, 95) for one in best_of_ours(ASENTMAX_OURS)),
            *(
                Better(one, peer, length)
                for one in best_of_ours(ASENTMAX_OURS)
                for peer in ASENTMAX_PEERS
                for length in (256, 512)
            ),
        ),
        published=(
            Published(SOFTMAX, 128, 0),
            Published(SSMAX, 128, 0),
            Published(ENTMAX, 128, 99.3),
            Published(ENTMAX, 256, 57.8),
            Published(ASENTMAX, 128, 100),
            Published(ASENTMAX, 256, 79.7),
            *(Published(one, 512, 0) for one in (SOFTMAX, SSMAX, ENTMAX, ASENTMAX)),
        ),
        peer="ASEntmax",
        note=(
            "Published numbers are the best of 3 seeds and several learning rates; ours are means "
            "over all seeds. The peer trains a model of width 256, 8 heads and MLP width 1,024 "
            "with Adam for 312,500 updates of 128 sequences, and its configuration keeps the "
            "checkpoint that does best on one of its validation sets, whose lengths are 64 to "
            "4,096. Ours have width 128, 4 heads, MLP width 256, Muon, 3,000 updates of 64 "
            "sequences (1/208 of the sequences), and the last checkpoint. All arms of depth 2 "
            "make equally many updates; entmax takes longer for each on our code."
        ),
    ),
    Experiment(
        name="peer-lacoco-sort",
        question=(
            "Does sort/best sort distinct symbols further than the models of Huang et al. 2025?"
        ),
        arms=(*LACOCO_PEERS, *LACOCO_OURS),
        panels=(Panel(ACCURACY, "distinct"), Panel(BAND, "distinct")),
        lengths=BANDS,
        claims=(
            *(AtLeast(one, 150, 99, "distinct", BAND) for one in best_of_ours(LACOCO_OURS)),
            *(
                Better(one, peer, 150, "distinct", BAND)
                for one in best_of_ours(LACOCO_OURS)
                for peer in LACOCO_PEERS
            ),
        ),
        published=(
            Published(NOPE, 50, 100, distribution="distinct", quantity=BAND),
            Published(NOPE, 100, 99.8, distribution="distinct", quantity=BAND),
            Published(NOPE, 150, 80.6, distribution="distinct", quantity=BAND),
            Published(OFFSET, 50, 100, distribution="distinct", quantity=BAND),
            Published(OFFSET, 100, 99.96, distribution="distinct", quantity=BAND),
            Published(OFFSET, 150, 99.4, distribution="distinct", quantity=BAND),
        ),
        peer="Huang et al. 2025",
        note=(
            "Published numbers are means over the 5 runs that were perfect up to length 50 when "
            "training stopped (2 of 7 runs with positions were left out); ours are means over all "
            "seeds. The peer tests on 2,000 sequences of lengths 51 to 100 and as many of 101 to "
            "150; ours is the mean over the lengths 60, 70, …, 100 and 110, 120, …, 150, which "
            "are longer on average. The peer trains one block of width 256 (one head without "
            "positions, two with) with AdamW for at most 30,000 updates of 64 sequences, and "
            "stops when lengths up to 50 are perfect. Ours have width 128, 4 heads, two blocks, "
            "Muon, and 3,000 updates of 64 sequences. Alphabet (150) and training lengths are "
            "the peer's."
        ),
    ),
)
