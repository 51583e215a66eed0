"""Position schemes against other libraries and the papers, and which know differences alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from taskhint.model import reference
from taskhint.model.block import Draw, LearnedWeights
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.places import Places
from taskhint.model.positions import Fire, PositionHooks, Positions, Rope, T5Buckets
from taskhint.model.reference import Padded
from taskhint.model.softmax import Normaliser, Temperature
from taskhint.tasks import Increment

HEADS = (1, 2, 3, 4, 6, 8, 12)
T = 150
TASK = Increment()
theirs_warn = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # x-transformers does


def ours(family: Any) -> list[str]:
    """The kinds that the package itself has: a new one fails until it is known here."""
    return [kind for kind, cls in family.kinds().items() if cls.__module__.startswith("taskhint.")]


def bound(positions: Positions, heads: int) -> tuple[PositionHooks, dict[str, Tensor]]:
    model = ModelConfig(width=16 * heads, heads=heads, positions=positions)
    wanted = LearnedWeights(positions.weights(model) | positions.block_weights(model))
    with torch.no_grad():
        wanted.initialise(Draw(3))
    weights = {name: value.detach() for name, value in wanted.values().items()}
    return positions.bind(model, weights), weights


def bias(hooks: PositionHooks, size: int = T) -> Tensor:
    """(H, T, T), 0 where a query may not look."""
    ids = torch.arange(size)
    found = hooks.bias(ids.view(1, 1, -1, 1), ids.view(1, 1, 1, -1))
    return found.expand(1, -1, size, size)[0].tril()


@theirs_warn
@pytest.mark.parametrize("heads", HEADS)
def test_alibi_is_that_of_transformers_and_x_transformers(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from x_transformers.x_transformers import AlibiPositionalBias

    found = bias(bound(Positions.kinds()["alibi"](), heads)[0])
    bloom = build_alibi_tensor(torch.ones(1, T), heads, torch.float32).view(heads, 1, T)
    # Bloom adds slope · key: the same but for a number that all logits of a query share.
    shared = bloom - bloom.transpose(1, 2)
    assert torch.allclose(found, shared.tril(), atol=1e-5)
    theirs = AlibiPositionalBias(heads, heads).forward(T, T)
    assert torch.allclose(found, theirs.tril(), atol=1e-5)


@theirs_warn
@pytest.mark.parametrize(
    ("heads", "buckets", "furthest"), [(4, 32, 128), (2, 16, 40), (3, 32, 64)]
)
def test_t5_buckets_are_those_of_transformers_and_x_transformers(
    heads: int, buckets: int, furthest: int
) -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention
    from x_transformers.x_transformers import RelativePositionBias

    hooks, weights = bound(T5Buckets(buckets, furthest), heads)
    config = T5Config(
        num_heads=heads,
        is_decoder=True,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=furthest,
    )
    t5 = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    with torch.no_grad():
        t5.relative_attention_bias.weight.copy_(weights["bias.weight"])
        theirs = t5.compute_bias(T, T)[0].tril()
    assert torch.allclose(bias(hooks), theirs, atol=1e-6)
    other = RelativePositionBias(1.0, True, buckets, furthest, heads)
    with torch.no_grad():
        other.relative_attention_bias.weight.copy_(weights["bias.weight"])
        assert torch.allclose(bias(hooks), other.forward(T, T).tril(), atol=1e-6)


@pytest.mark.parametrize("base", [10_000.0, 500.0])
@pytest.mark.parametrize("width", [2, 8, 64])
def test_rope_is_that_of_transformers(width: int, base: float) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    settings = {"rope_type": "default", "rope_theta": base}
    config = LlamaConfig(
        hidden_size=3 * width, num_attention_heads=3, head_dim=width, rope_parameters=settings
    )
    q, k = torch.randn(2, 1, 3, T, width, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(T)
    cosine, sine = LlamaRotaryEmbedding(config)(q, ids[None])
    theirs = apply_rotary_pos_emb(q, k, cosine, sine)
    places = Places(ids, ids, ids, ids)
    for given, wanted in zip((q, k), theirs, strict=True):
        found = Rope(base).turn(given[0].transpose(0, 1), places)
        assert torch.allclose(found.transpose(0, 1), wanted[0], atol=2e-5)


# How much all places of an example may be moved before a model notices. Places that come from the
# task or from ⊥ are not moved as a whole: `coupling` stands for them with the scheme inside.
ANYWHERE = 3000
MOVES: dict[str, int] = {
    **dict.fromkeys(("none", "rope", "alibi", "nape", "t5", "windows"), ANYWHERE),
    **dict.fromkeys(("kerple-log", "kerple-power", "randomised"), ANYWHERE),
    "fire": 300,  # as long as places stay below its threshold
    **dict.fromkeys(("learned", "learned-offset", "sinusoidal", "abacus", "coupling"), 0),
}
FROM_DELIMITER = {"mirror"}  # places are distances from ⊥, whatever the ids


def logits(kind: str, moved: int) -> Tensor:
    model = ModelConfig(width=16, heads=2, depth=2, mlp_width=8, positions=kind)  # type: ignore[arg-type]
    decoder = Decoder(model, TASK.vocab.size, [TASK])
    decoder.initialise(4)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in decoder.parameters():
            value.add_(0.1 * torch.randn(value.shape, generator=generator))
    decoder.double()
    tokens = torch.tensor([[3, 9, 0, 9, TASK.vocab.delimiter, 0, 1, 9]])
    ids = torch.arange(moved, moved + 9)[None]
    batch = Padded(tokens, torch.tensor([4]), torch.tensor([9]), ids)
    with torch.no_grad():
        return reference.logits(model, dict(decoder.named_parameters()), batch, TASK.kind, TASK)


@pytest.mark.parametrize("kind", ours(Positions))
def test_relative_schemes_do_not_notice_that_all_places_move(kind: str) -> None:
    if kind in FROM_DELIMITER:
        assert torch.equal(logits(kind, 0), logits(kind, 40))
        return
    moves = MOVES[kind]  # a scheme of which this is not known fails here
    if moves:
        assert torch.allclose(logits(kind, 0), logits(kind, moves), atol=1e-9)
    else:
        assert (logits(kind, 0) - logits(kind, 40)).abs().max() > 1e-3


def test_fire_notices_places_beyond_its_threshold() -> None:
    assert not torch.allclose(logits("fire", 0), logits("fire", 3000), atol=1e-6)
    assert Fire().threshold == 512


def published(kind: str, heads: int, distance: np.ndarray[Any, Any], w: dict[str, Any]) -> Any:
    """(H, T, T) the formula of the paper, in NumPy."""
    if kind == "nape":
        half = heads // 2
        slopes = np.array([1 / h for h in range(1, half + 1)] + [0.0] * (heads - half))
        return -slopes[:, None, None] * distance
    a = np.exp(w["log_r1"])[:, None, None]
    if kind == "kerple-log":
        return -a * np.log(1 + np.exp(w["log_r2"])[:, None, None] * distance)
    power = 2 / (1 + np.exp(-w["logit_r2"]))[:, None, None]
    return -a * distance**power


@pytest.mark.parametrize("kind", ["nape", "kerple-log", "kerple-power"])
@pytest.mark.parametrize("heads", [2, 3, 8])
def test_biases_are_the_papers_formulas(kind: str, heads: int) -> None:
    hooks, weights = bound(Positions.kinds()[kind](), heads)
    place = np.arange(T, dtype=np.float64)
    distance = np.tril(place[:, None] - place)
    wanted = published(kind, heads, distance, {k: v.double().numpy() for k, v in weights.items()})
    assert np.allclose(bias(hooks).numpy(), np.tril(wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heads", [1, 4])
def test_fire_is_the_papers_formula_over_a_whole_sequence(heads: int) -> None:
    threshold = 20.0
    hooks, weights = bound(Fire(threshold), heads)
    w = {name: value.double().numpy() for name, value in weights.items()}
    place = np.arange(T, dtype=np.float64)
    distance = np.tril(place[:, None] - place)
    query = np.maximum(place, threshold * w["threshold"])
    ratio = np.log(w["c"] * distance + 1) / np.log(w["c"] * query + 1)[:, None]
    hidden = np.maximum(0.0, ratio[..., None] * w["up.weight"] + w["up.bias"])
    wanted = np.moveaxis(hidden @ w["down.weight"].T + w["down.bias"], 2, 0)
    assert np.allclose(bias(hooks).numpy(), np.tril(wanted), atol=1e-4)


def published_factors(n: Any, w: dict[str, Any], x: Any) -> dict[str, Any]:
    """What multiplies the logits of queries that see n keys and are made of the vectors x.

    The input has 11 symbols, the sequence 99 tokens; `log-n` has 41 as its training length.
    """
    seen, beta = np.log(n), w.get("beta", 0.0)
    adapted = [x @ w[f"{name}.weight"].T for name in ("beta", "gamma") if f"{name}.weight" in w]
    return {
        "constant": 1.0,
        "fixed": 1.25,
        "log-visible": beta * seen,
        "log-input": beta * np.log(11),
        "log-sequence": beta * np.log(99),
        "ssmax": seen[:, None] * w.get("scale", 0.0),
        "log-n": np.maximum(1.0, seen / np.log(41)),
        "adaptive": 1.0
        + np.log1p(np.exp(adapted[0])) * np.log(n + 1)[:, None] ** (2.0 * np.tanh(adapted[1]))
        if adapted
        else None,
    }


@pytest.mark.parametrize("kind", ours(Temperature))
def test_every_temperature_is_its_formula(kind: str) -> None:
    temperature = Temperature.kinds()[kind]()
    model = ModelConfig(width=24, heads=3, temperature=temperature)
    wanted = LearnedWeights(temperature.weights(model))
    with torch.no_grad():
        wanted.initialise(Draw(3))
    weights = {name: value.detach() for name, value in wanted.values().items()}
    n = np.array([1, 2, 9, 41, 42, 500])
    index = torch.from_numpy(n - 1)
    x = torch.randn(len(n), 24, generator=torch.Generator().manual_seed(0))
    places = Places(index, torch.full_like(index, 11), torch.full_like(index, 99), index)
    found = temperature.bind(model, weights).factor(places.with_stream(x))
    numbers = {name: value.double().numpy() for name, value in weights.items()}
    shown = published_factors(n, numbers, x.double().numpy())[kind]
    assert np.allclose(1.0 if found is None else found.numpy(), shown, rtol=1e-5)


@pytest.mark.parametrize("kind", ours(Normaliser))
def test_every_normaliser_is_that_of_another_library(kind: str) -> None:
    from entmax import entmax_bisect
    from scipy.special import softmax

    logits = 3.0 * torch.randn(50, 20, generator=torch.Generator().manual_seed(0)).double()
    others: dict[str, Any] = {
        "softmax": torch.from_numpy(softmax(logits.numpy(), axis=1)),
        "entmax15": entmax_bisect(logits, 1.5, 1, 100),
    }
    assert torch.allclose(Normaliser.kinds()[kind]().weights(logits), others[kind], atol=1e-9)
