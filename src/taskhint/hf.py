"""`import taskhint.hf` makes transformers know taskhint's models, without `trust_remote_code`."""

from __future__ import annotations

from taskhint.system.extras import need

need("transformers", "taskhint.hf")

from transformers import AutoConfig, AutoModelForCausalLM

from taskhint.ecosystem.configuration_taskhint import TaskhintConfig
from taskhint.ecosystem.modeling_taskhint import TaskhintForCausalLM

__all__ = ["TaskhintConfig", "TaskhintForCausalLM"]

AutoConfig.register(TaskhintConfig.model_type, TaskhintConfig, exist_ok=True)
AutoModelForCausalLM.register(TaskhintConfig, TaskhintForCausalLM, exist_ok=True)
