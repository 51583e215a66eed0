"""The configuration of a taskhint model for transformers.

`taskhint export --format transformers` writes it beside the weights, in one file: it needs
transformers alone.
"""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig


class TaskhintConfig(PretrainedConfig):  # type: ignore[misc]
    """A decoder's shape, the names of its heads, and the token ids that have a meaning.

    positions, attention_temperature, normaliser: the settings of each, with its `kind`. norm:
    layer normalisation `before` each part of a block, `after` each block, or `none`. heads: the
    tasks; the first one is the main task. symbols: ids below are symbols, others are marks.
    coupled: for positions of kind `coupling`, which tokens share a place, by head.
    taskhint: the recipe and step, so that `taskhint import` can make a run of it again.
    """

    model_type = "taskhint"
    keys_to_ignore_at_inference = ["past_key_values"]  # noqa: RUF012

    def __init__(
        self,
        hidden_size: int = 128,
        num_attention_heads: int = 4,
        num_hidden_layers: int = 2,
        intermediate_size: int = 256,
        head_dim: int = 32,
        vocab_size: int = 103,
        hidden_act: str = "gelu",
        norm: str = "before",
        qk_norm: bool = False,
        positions: dict[str, Any] | None = None,
        attention_temperature: dict[str, Any] | None = None,
        normaliser: dict[str, Any] | None = None,
        heads: list[str] | None = None,
        symbols: int = 100,
        delimiter_token_id: int = 100,
        coupled: dict[str, dict[str, Any]] | None = None,
        taskhint: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads
        self.num_hidden_layers = num_hidden_layers
        self.intermediate_size = intermediate_size
        self.head_dim = head_dim
        self.vocab_size = vocab_size
        self.hidden_act = hidden_act
        self.norm = norm
        self.qk_norm = qk_norm
        self.positions = positions or {"kind": "none"}
        self.attention_temperature = attention_temperature or {"kind": "constant"}
        self.normaliser = normaliser or {"kind": "softmax"}
        self.heads = heads or ["main"]
        self.symbols = symbols
        self.delimiter_token_id = delimiter_token_id
        self.coupled = coupled or {}
        self.taskhint = taskhint or {}
        others.setdefault("tie_word_embeddings", False)
        super().__init__(**others)

    @property
    def layer_norm_type(self) -> str:
        """The same as `norm`, under a name that TransformerLens hands on to its adapters."""
        return self.norm
