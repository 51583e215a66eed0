"""A taskhint model in transformers: a decoder with a head per task.

`taskhint export --format transformers` writes it beside the weights, in one file with its two
neighbours: they need torch and transformers alone. `model/reference.py` is the same model, and the
tests hold the two together.

Shapes: B examples, A new tokens (queries), T tokens so far (keys), D width, H heads, K head width.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.modeling_outputs import CausalLMOutputWithPast

from .configuration_taskhint import TaskhintConfig
from .schemes_taskhint import (
    Places,
    Weights,
    add_positions,
    block_shapes,
    factor,
    normalised,
    position_bias,
    position_ids,
    reads_sequence,
    shared_shapes,
    temperature_shapes,
    turn_keys,
    turn_queries,
)


class TaskhintAttention(nn.Module):
    """`scale`, `scores` and `pattern` change nothing: they are where other libraries can look at
    the values of these names, or edit them.
    """

    def __init__(self, config: TaskhintConfig, layer: int) -> None:
        super().__init__()
        self.config, self.layer = config, layer
        self.shape = (config.num_attention_heads, config.head_dim)
        inner = config.num_attention_heads * config.head_dim
        self.q, self.k, self.v = (
            nn.Linear(config.hidden_size, inner, bias=False) for _ in range(3)
        )
        self.out = nn.Linear(inner, config.hidden_size, bias=False)
        self.temperature = Weights(temperature_shapes(config))
        self.positions = Weights(block_shapes(config))
        self.scale, self.scores, self.pattern = (nn.Identity() for _ in range(3))

    def forward(
        self,
        x: Tensor,
        places: Places,
        shared: dict[str, Tensor],
        cache: Any = None,
        kept: list[Tensor] | None = None,
    ) -> Tensor:
        """(B, A, D) -> (B, A, D). With `kept`, attention weights are added to that list."""
        config = self.config
        q, k, v = (part(x).unflatten(2, self.shape) for part in (self.q, self.k, self.v))
        if config.qk_norm:
            q, k = (functional.rms_norm(part, (config.head_dim,)) for part in (q, k))
        each = factor(config, self.temperature.values(), x, places) / math.sqrt(config.head_dim)
        scale = self.scale(each)
        q = turn_queries(config, q, scale, places) * scale[..., None]
        k, v = turn_keys(config, k, places).transpose(1, 2), v.transpose(1, 2)
        if cache is not None:
            k, v = cache.update(k, v, self.layer)
        scores = q.transpose(1, 2) @ k.transpose(2, 3)
        bias = position_bias(config, shared | self.positions.values(), places)
        if bias is not None:
            scores = scores + bias
        scores = self.scores(scores.masked_fill(~places.visible, -math.inf))
        weights = self.pattern(normalised(config, scores).to(v.dtype))
        if kept is not None:
            kept.append(weights)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class TaskhintMlp(nn.Module):
    def __init__(self, config: TaskhintConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = nn.GELU() if config.hidden_act == "gelu" else nn.ReLU()
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


def _norm(config: TaskhintConfig, where: str) -> nn.Module:
    return nn.LayerNorm(config.hidden_size) if config.norm == where else nn.Identity()


class TaskhintBlock(nn.Module):
    def __init__(self, config: TaskhintConfig, layer: int) -> None:
        super().__init__()
        self.before_attention = _norm(config, "before")
        self.attention = TaskhintAttention(config, layer)
        self.after_attention = nn.Identity()  # to look at the stream there, or to edit it
        if config.intermediate_size:
            self.before_mlp = _norm(config, "before")
            self.mlp = TaskhintMlp(config)
        self.after = _norm(config, "after")

    def forward(
        self,
        hidden_states: Tensor,
        places: Places,
        shared: dict[str, Tensor],
        cache: Any = None,
        kept: list[Tensor] | None = None,
    ) -> Tensor:
        x = hidden_states
        gathered = self.attention(self.before_attention(x), places, shared, cache, kept)
        x = self.after_attention(x + gathered)
        if hasattr(self, "mlp"):
            x = x + self.mlp(self.before_mlp(x))
        return self.after(x)


class TaskhintHeads(nn.ModuleDict):
    """An unembedding for each task, by name; the first is that of the main task."""

    def forward(self, x: Tensor, head: str) -> Tensor:
        return self[head](x)

    @property
    def weight(self) -> Tensor:
        return next(iter(self.values())).weight  # type: ignore[return-value]

    @property
    def bias(self) -> Tensor:
        return next(iter(self.values())).bias  # type: ignore[return-value]


class TaskhintForCausalLM(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """`model(tokens, attention_mask)` and `model.generate`, with padding on either side.

    head: the task whose head answers; the main task if none is named. sequence_lengths: (B,)
    tokens of prompt and answer together, which some models need to know; `generate` takes prompt
    and `max_new_tokens` together, a single pass one token more than it is given.
    """

    config_class = TaskhintConfig
    base_model_prefix = ""
    _no_split_modules = ["TaskhintBlock"]  # noqa: RUF012
    _supports_sdpa = False

    def __init__(self, config: TaskhintConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = Weights(shared_shapes(config))
        self.blocks = nn.ModuleList(
            TaskhintBlock(config, layer) for layer in range(config.num_hidden_layers)
        )
        self.final_norm = _norm(config, "before")
        self.heads = TaskhintHeads(
            {name: nn.Linear(config.hidden_size, config.vocab_size) for name in config.heads}
        )
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_output_embeddings(self) -> nn.Module:
        return self.heads[self.config.heads[0]]

    def _init_weights(self, module: nn.Module) -> None:
        """Weights come from a run: nothing is drawn here but what transformers asks for."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        labels: Tensor | None = None,
        head: str | None = None,
        sequence_lengths: Tensor | None = None,
        logits_to_keep: int = 0,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **others: Any,  # noqa: ARG002
    ) -> CausalLMOutputWithPast:
        """(B, A, V) logits. With `logits_to_keep=1` they are those of each row's last real token,
        so that `generate` is right with padding on either side.
        """
        name = self._head(head)
        if int(input_ids.max()) >= self.config.vocab_size:
            raise ValueError("the input has a word that is no symbol of this model")
        cache = past_key_values
        if cache is None and use_cache:
            cache = DynamicCache(config=self.config)
        tokens = self._all_tokens(input_ids, cache)
        seen = self._mask(tokens, attention_mask)
        places = self._places(name, tokens, seen, input_ids.shape[1], sequence_lengths)
        shared = self.positions.values()
        x = add_positions(self.config, shared, self.embedding(input_ids), places)
        hidden: list[Tensor] = [x]
        attentions: list[Tensor] = []
        for block in self.blocks:
            x = block(x, places, shared, cache, attentions)
            hidden.append(x)
        x = self.final_norm(x)
        if logits_to_keep == 1:
            x = x[torch.arange(len(x)), _last(seen[:, -x.shape[1] :])][:, None]
        elif logits_to_keep:
            x = x[:, -logits_to_keep:]
        logits = self.heads(x, head=name)
        wants = (
            self.config.output_hidden_states
            if output_hidden_states is None
            else (output_hidden_states)
        )
        return CausalLMOutputWithPast(
            loss=None if labels is None else _loss(logits, labels),
            logits=logits,
            past_key_values=cache,
            hidden_states=tuple(hidden) if wants else None,
            attentions=tuple(attentions) if output_attentions else None,
        )

    def generate(self, inputs: Tensor | None = None, **options: Any) -> Any:
        """As in transformers; where the model must know how long its answer will be, that is
        `max_new_tokens`.
        """
        if reads_sequence(self.config) and options.get("sequence_lengths") is None:
            tokens = options["input_ids"] if inputs is None else inputs
            settings = options.get("generation_config") or self.generation_config
            more = options.get("max_new_tokens") or settings.max_new_tokens
            if more is None:
                raise ValueError("this model must know the length of its answer: max_new_tokens")
            real = self._mask(tokens, options.get("attention_mask")).sum(dim=1)
            options["sequence_lengths"] = real + more
        return super().generate(inputs, **options)

    def _head(self, name: str | None) -> str:
        name = self.config.heads[0] if name is None else name
        if name not in self.config.heads:
            allowed = ", ".join(self.config.heads)
            raise ValueError(f"the model has no head {name!r}; it has: {allowed}")
        return name

    def _all_tokens(self, tokens: Tensor, cache: Any) -> Tensor:
        """(B, T) the tokens so far.

        They are one layer more of the cache, so that what reorders or cuts a cache does so with
        them.
        """
        if cache is None:
            return tokens
        if len(cache.layers) <= self.config.num_hidden_layers:
            missing = self.config.num_hidden_layers + 1 - len(cache.layers)
            cache.layers.extend(DynamicLayer() for _ in range(missing))
        entry = tokens[:, None, :, None]
        every, _ = cache.update(entry, entry, self.config.num_hidden_layers)
        return every[:, 0, :, 0]

    def _mask(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T) whether a token is real."""
        if mask is None:
            return torch.ones_like(tokens, dtype=torch.bool)
        if mask.shape != tokens.shape:
            raise ValueError(
                f"attention_mask is {tuple(mask.shape)}, but there are {tuple(tokens.shape)} "
                "tokens so far"
            )
        return mask.bool()

    def _places(
        self, head: str, tokens: Tensor, seen: Tensor, new: int, sequence: Tensor | None
    ) -> Places:
        config = self.config
        if sequence is None:
            if reads_sequence(config) and new < tokens.shape[1]:
                raise ValueError("with a cache this model needs sequence_lengths")
            sequence = seen.sum(dim=1) + 1
        sequence = torch.as_tensor(sequence, device=tokens.device).view(-1, 1)
        index = (seen.cumsum(dim=1) - 1).clamp(min=0)  # padding has no place; any will do
        delimiters = (tokens == config.delimiter_token_id) & seen
        inputs = (seen & (delimiters.cumsum(dim=1) == 0)).sum(dim=1, keepdim=True)
        marks = (tokens >= config.symbols) & seen
        ids, following = position_ids(config, head, marks, index, inputs, sequence)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        causal = place[-new:, None] >= place
        # Padding sees itself, so that its numbers stay finite.
        visible = causal & (seen[:, None, :] | (place[-new:, None] == place))
        return Places(
            index[:, -new:],
            inputs,
            sequence,
            ids,
            ids[:, -new:],
            following[:, -new:],
            visible[:, None],
        )


def _last(seen: Tensor) -> Tensor:
    """(B,) where the last real token stands."""
    return (seen.long() * torch.arange(1, seen.shape[1] + 1, device=seen.device)).argmax(dim=1)


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Of each next token; -100 asks for none."""
    return functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100
    )
