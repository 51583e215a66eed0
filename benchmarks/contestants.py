"""The same model in the libraries that people would take instead, with our weights in it.

Each computes exactly our function (a test compares the logits), on tokens padded at the right.
What a library has and we do not is made to do nothing: zero biases, zeroed positions. Where a
library offers two kinds of attention, both compete and the faster one counts.

Shapes: B examples, T tokens, V symbols.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.padded import PaddedDecoder
from taskhint.model.decoder import Decoder
from taskhint.system.errors import UserError

PACKAGES = {"transformers": "transformers", "x-transformers": "x_transformers"}
CONTESTANTS = ("transformers", "x-transformers", "padded")
MAX_TOKENS = 256


class Contestant(nn.Module):
    """A model of some library, called with (B, T) tokens, returning (B, T, V) logits."""

    def __init__(self, model: nn.Module, logits: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self.logits = model, logits

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits(tokens)


def need_packages(names: Iterable[str] = PACKAGES) -> None:
    missing = [name for name in names if importlib.util.find_spec(PACKAGES[name]) is None]
    if missing:
        raise UserError(
            f"this benchmark needs {' and '.join(missing)}; pip install 'taskhint[bench]'"
        )


def contestants(
    decoder: Decoder, head: str, names: Iterable[str] = CONTESTANTS
) -> dict[str, dict[str, Contestant]]:
    """Contestants by name, and the variants of each by theirs."""
    makers = {
        "transformers": (hugging_face, ("sdpa", "eager")),
        "x-transformers": (x_transformers, ("flash", "plain")),
        "padded": (padded, ("sdpa",)),
    }
    return {
        name: {kind: make(decoder, head, kind) for kind in kinds}
        for name, (make, kinds) in makers.items()
        if name in names
    }


def hugging_face(decoder: Decoder, head: str, attention: str = "sdpa") -> Contestant:
    """GPT-2 of `transformers`, untied, with a bias on the logits, without dropout."""
    model = _gpt2(decoder, attention)
    _copy(_gpt2_weights(decoder, head), model)
    return Contestant(model, lambda tokens: model(input_ids=tokens, use_cache=False).logits)


def _gpt2(decoder: Decoder, attention: str) -> Any:
    transformers: Any = importlib.import_module("transformers")
    config, vocab_size = decoder.config, decoder.embedding.num_embeddings
    settings = transformers.GPT2Config(
        vocab_size=vocab_size,
        n_positions=MAX_TOKENS,
        n_embd=config.width,
        n_layer=config.depth,
        n_head=config.heads,
        n_inner=config.mlp_width,
        activation_function=config.activation,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation=attention,
    )
    model = transformers.GPT2LMHeadModel(settings)
    model.lm_head = nn.Linear(config.width, vocab_size)
    return model


def _gpt2_weights(decoder: Decoder, head: str) -> dict[str, Tensor]:
    ours = dict(decoder.named_parameters())
    theirs: dict[str, Tensor] = {
        "transformer.wte.weight": ours["embedding.weight"],
        "transformer.ln_f.weight": ours["final_norm.weight"],
        "transformer.ln_f.bias": ours["final_norm.bias"],
        "lm_head.weight": ours[f"heads.{head}.weight"],
        "lm_head.bias": ours[f"heads.{head}.bias"],
    }
    for i in range(decoder.config.depth):
        our, their = f"blocks.{i}.", f"transformer.h.{i}."
        for kind in ("weight", "bias"):
            theirs[f"{their}ln_1.{kind}"] = ours[f"{our}before_attention.{kind}"]
            theirs[f"{their}ln_2.{kind}"] = ours[f"{our}before_mlp.{kind}"]
        theirs[f"{their}attn.c_attn.weight"] = ours[
            f"{our}attention.qkv"
        ].T  # GPT-2 keeps its maps the other way round
        theirs[f"{their}attn.c_proj.weight"] = ours[f"{our}attention.out.weight"].T
        for name, other in (("c_fc", "up"), ("c_proj", "down")):
            theirs[f"{their}mlp.{name}.weight"] = ours[f"{our}mlp.{other}.weight"].T
            theirs[f"{their}mlp.{name}.bias"] = ours[f"{our}mlp.{other}.bias"]
    return theirs


def x_transformers(decoder: Decoder, head: str, attention: str = "flash") -> Contestant:
    """`x-transformers`; its norms have no bias, and neither may ours then."""
    model = _x_transformer(decoder, attention)
    _copy(_x_weights(decoder, head), model)
    return Contestant(model, model)


def _x_transformer(decoder: Decoder, attention: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # it uses torch.jit while it is imported
        library: Any = importlib.import_module("x_transformers")
    config, vocab_size = decoder.config, decoder.embedding.num_embeddings
    layers = library.Decoder(
        dim=config.width,
        depth=config.depth,
        heads=config.heads,
        attn_dim_head=config.each_head,
        attn_flash=attention == "flash",
        ff_mult=config.mlp_width / config.width,
        rotary_pos_emb=False,
    )
    return library.TransformerWrapper(
        num_tokens=vocab_size,
        max_seq_len=MAX_TOKENS,
        use_abs_pos_emb=False,
        attn_layers=layers,
        to_logits=nn.Linear(config.width, vocab_size),
    )


def _x_weights(decoder: Decoder, head: str) -> dict[str, Tensor]:
    ours = dict(decoder.named_parameters())
    theirs: dict[str, Tensor] = {
        "token_emb.emb.weight": ours["embedding.weight"],
        "attn_layers.final_norm.gamma": ours["final_norm.weight"] - 1.0,  # it counts from 1
        "to_logits.weight": ours[f"heads.{head}.weight"],
        "to_logits.bias": ours[f"heads.{head}.bias"],
    }
    for i in range(decoder.config.depth):
        our, attend, mlp = (
            f"blocks.{i}.",
            f"attn_layers.layers.{2 * i}.",
            f"attn_layers.layers.{2 * i + 1}.",
        )
        theirs[f"{attend}0.0.gamma"] = ours[f"{our}before_attention.weight"] - 1.0
        theirs[f"{mlp}0.0.gamma"] = ours[f"{our}before_mlp.weight"] - 1.0
        for name, value in zip("qkv", ours[f"{our}attention.qkv"].chunk(3), strict=True):
            theirs[f"{attend}1.to_{name}.weight"] = value
        theirs[f"{attend}1.to_out.weight"] = ours[f"{our}attention.out.weight"]
        for name, other in (("ff.0.0", "up"), ("ff.2", "down")):
            theirs[f"{mlp}1.{name}.weight"] = ours[f"{our}mlp.{other}.weight"]
            theirs[f"{mlp}1.{name}.bias"] = ours[f"{our}mlp.{other}.bias"]
    return theirs


def padded(decoder: Decoder, head: str, attention: str = "sdpa") -> Contestant:  # noqa: ARG001
    """A plain padded PyTorch model; torch's own attention is the only one that it has."""
    model = PaddedDecoder(decoder.config, decoder.embedding.num_embeddings)
    ours = dict(decoder.named_parameters())
    names = {
        "before_attention": "norm_1",
        "before_mlp": "norm_2",
        "attention.qkv": "qkv.weight",
        "attention.": "",
    }
    theirs = {}
    for name, value in ours.items():
        for old, new in {
            **names,
            "mlp.": "",
            "final_norm": "norm",
            f"heads.{head}.": "head.",
        }.items():
            name = name.replace(old, new)
        theirs[name] = value
    _copy({name: value for name, value in theirs.items() if not name.startswith("heads.")}, model)
    return Contestant(model, model)


@torch.no_grad()
def _copy(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Our weights where we have them, zeros elsewhere; every one of ours must find its place."""
    wanted = dict(model.named_parameters())
    unknown = weights.keys() - wanted.keys()
    if unknown:
        raise ValueError(f"the model has no weights {sorted(unknown)}")
    for name, value in wanted.items():
        if name in weights:
            value.copy_(weights[name])
        else:
            value.zero_()
