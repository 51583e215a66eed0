"""Exported models in TransformerLens: `TransformerBridge.boot_transformers(DIR)`.

TransformerLens finds the adapter by the entry point group `transformer_lens.architectures`.
`LENS_NAMES` is the table of its names beside those of a Trace. An edit at any of them has an
effect, also at attention's scores and pattern.
"""

from __future__ import annotations

import re
from typing import Any

from torch import nn
from transformer_lens.hook_points import HookPoint
from transformer_lens.model_bridge.architecture_adapter import ArchitectureAdapter
from transformer_lens.model_bridge.generalized_components import (
    AttentionBridge,
    BlockBridge,
    EmbeddingBridge,
    LinearBridge,
    MLPBridge,
    NormalizationBridge,
    UnembeddingBridge,
)
from transformer_lens.model_bridge.generalized_components.base import GeneralizedComponent

import taskhint.hf  # noqa: F401  (TransformerLens loads the model by the Auto classes)

LENS_NAMES = {
    "embedding": "blocks.0.hook_resid_pre",
    "blocks.{i}.attention.scale": "blocks.{i}.attn.hook_attn_scale",
    "blocks.{i}.attention.logits": "blocks.{i}.attn.hook_attn_scores",
    "blocks.{i}.attention.weights": "blocks.{i}.attn.hook_pattern",
    "blocks.{i}.attention.heads": "blocks.{i}.attn.hook_z",
    "blocks.{i}.attention.out": "blocks.{i}.hook_attn_out",
    "blocks.{i}.after_attention": "blocks.{i}.hook_resid_mid",
    "blocks.{i}.mlp.out": "blocks.{i}.hook_mlp_out",
    "blocks.{i}.after_mlp": "blocks.{i}.hook_resid_post",
    "final": "unembed.hook_in",
    "logits": "unembed.hook_out",
}
"""Trace name -> name in TransformerLens."""


def lens_name(name: str) -> str:
    """The name in TransformerLens of a Trace value, such as `blocks.1.attention.heads`."""
    block = re.match(r"blocks\.(\d+)\.", name)
    if block is None:
        return LENS_NAMES[name]
    pattern = name.replace(block[0], "blocks.{i}.", 1)
    return LENS_NAMES[pattern].format(i=block[1])


class TaskhintAttentionBridge(AttentionBridge):  # type: ignore[misc]
    """The model calls its modules `scale`, `scores` and `pattern` on these values: hook points
    take their places.
    """

    supports_split_qkv_fork = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.hook_attn_scale = HookPoint()

    def set_original_component(self, original_component: nn.Module) -> None:
        super().set_original_component(original_component)
        original_component.scale = self.hook_attn_scale
        original_component.scores = self.hook_attn_scores
        original_component.pattern = self.hook_pattern


class TaskhintBlockBridge(BlockBridge):  # type: ignore[misc]
    """The stream between attention and MLP has a module of its own, `after_attention`."""

    def __init__(self, name: str, submodules: dict[str, GeneralizedComponent]) -> None:
        super().__init__(name, submodules=submodules)
        self.hook_aliases = {
            "hook_resid_pre": "hook_in",
            "hook_attn_out": "attn.hook_out",
            "hook_resid_mid": "mid.hook_out",
            "hook_resid_post": "hook_out",
            **({"hook_mlp_out": "mlp.hook_out"} if "mlp" in submodules else {}),
        }


class TaskhintArchitectureAdapter(ArchitectureAdapter):  # type: ignore[misc]
    """Names of TransformerLens -> modules of `TaskhintForCausalLM`."""

    supports_compatibility_mode = False  # folding of weights does not know QK-norm and our heads

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        self.cfg.normalization_type = "LN"
        self.cfg.positional_embedding_type = "none"  # whatever it is, the model does it
        self.cfg.final_rms = False
        self.cfg.gated_mlp = False
        self.cfg.attn_only = not cfg.d_mlp
        self.cfg.default_prepend_bos = False
        self.weight_processing_conversions = self._qkvo_weight_conversions()
        self.component_mapping = {
            "embed": EmbeddingBridge(name="embedding"),
            "blocks": TaskhintBlockBridge(name="blocks", submodules=self._block()),
            "ln_final": self._norm("final_norm"),
            "unembed": UnembeddingBridge(name="heads"),
        }

    def _block(self) -> dict[str, GeneralizedComponent]:
        linear = {"q": "q", "k": "k", "v": "v", "o": "out"}
        return {
            "ln1": self._norm("before_attention"),
            "attn": TaskhintAttentionBridge(
                name="attention",
                config=self.cfg,
                submodules={lens: LinearBridge(name=ours) for lens, ours in linear.items()},
            ),
            "mid": GeneralizedComponent(name="after_attention"),
            **({} if self.cfg.attn_only else self._mlp()),
        }

    def _mlp(self) -> dict[str, GeneralizedComponent]:
        parts = {"in": LinearBridge(name="up"), "out": LinearBridge(name="down")}
        return {
            "ln2": self._norm("before_mlp"),
            "mlp": MLPBridge(name="mlp", config=self.cfg, submodules=parts),
        }

    def _norm(self, name: str) -> NormalizationBridge:
        """Torch's own layer normalisation, or nothing where the model has none."""
        return NormalizationBridge(name=name, config=self.cfg, use_native_layernorm_autograd=True)
