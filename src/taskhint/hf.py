"""`import taskhint.hf` makes transformers know taskhint's models, without `trust_remote_code`."""

from __future__ import annotations

from taskhint.system.errors import UserError

try:
    from transformers import AutoConfig, AutoModelForCausalLM
except ImportError:
    raise UserError(
        "taskhint.hf needs the package transformers; "
        "install it with: pip install 'taskhint[transformers]'"
    ) from None

from taskhint.ecosystem.configuration_taskhint import TaskhintConfig
from taskhint.ecosystem.modeling_taskhint import TaskhintForCausalLM

__all__ = ["TaskhintConfig", "TaskhintForCausalLM"]

AutoConfig.register(TaskhintConfig.model_type, TaskhintConfig, exist_ok=True)
AutoModelForCausalLM.register(TaskhintConfig, TaskhintForCausalLM, exist_ok=True)
