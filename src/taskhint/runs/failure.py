"""What is kept of a step whose loss or gradient is not finite: the batch, and where the numbers
went wrong.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from taskhint.data.batch import Batch
from taskhint.model.decoder import Decoder
from taskhint.runs.checkpoint import tensor_bytes
from taskhint.system.files import json_bytes, write_atomically


def save_failure(
    directory: Path, task: str, batch: Batch, loss: Tensor, norm: Tensor, decoder: Decoder
) -> None:
    tensors, rest = {}, {}
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, np.ndarray):
            value = torch.from_numpy(value)
        if isinstance(value, Tensor):
            tensors[field.name] = value
        else:
            rest[field.name] = _plain(value)
    weights = dict(decoder.named_parameters())
    gradients = {name: value.grad for name, value in weights.items() if value.grad is not None}
    about = {
        "task": task,
        "loss": str(loss.item()),
        "gradient_norm": str(norm.item()),
        "weights_not_finite": [
            name for name, value in weights.items() if not value.isfinite().all()
        ],
        "gradients_not_finite": [
            name for name, value in gradients.items() if not value.isfinite().all()
        ],
        "batch": rest,
    }
    write_atomically(directory / "batch.safetensors", tensor_bytes(tensors))
    write_atomically(directory / "failure.json", json_bytes(about))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
