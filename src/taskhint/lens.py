"""`import taskhint.lens` makes `TransformerBridge.boot_transformers` take exported models.

The entry point alone is enough for `build_bridge_from_module`. `boot_transformers` of
TransformerLens 4.3 looks up an architecture's name before it looks for entry points, in a
dictionary that only has its own.
"""

from __future__ import annotations

from taskhint.system.extras import need

need("transformer_lens", "taskhint.lens")

from transformer_lens.factories import architecture_adapter_factory as factory

from taskhint.ecosystem.lens import LENS_NAMES, TaskhintArchitectureAdapter, lens_name

__all__ = ["LENS_NAMES", "TaskhintArchitectureAdapter", "lens_name"]

NAME = "TaskhintForCausalLM"

factory.ArchitectureAdapterFactory.discover_entry_points()
factory.ArchitectureAdapterFactory.register_adapter(NAME, TaskhintArchitectureAdapter)
factory.SUPPORTED_ARCHITECTURES.setdefault(NAME, TaskhintArchitectureAdapter)
