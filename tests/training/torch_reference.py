"""What PyTorch makes of a small network in five steps of each optimizer, kept in torch_reference.json.

Run with an interpreter that has torch: python tests/training/torch_reference.py (made by 2.13.0).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("torch_reference.json")

OPTIMIZERS = {
    "sgd": ("sgd", {"learning_rate": 0.1}),
    "momentum": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "nesterov": True}),
    "adam": ("adam", {"learning_rate": 0.01, "weight_decay": 0.02}),
    "adamw": ("adamw", {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.99, "weight_decay": 0.1}),
}
"""Name → optimizer of powerlab and its numbers."""

STEPS = 5


def start():
    """Return the weights: a convolution of stride 2, a batch norm, a linear layer."""
    generator = np.random.default_rng(21)
    return {
        "conv": generator.standard_normal((4, 2, 3, 3)).astype(np.float32) / 4,
        "scale": np.ones(4, np.float32),
        "shift": np.zeros(4, np.float32),
        "linear": generator.standard_normal((3, 16)).astype(np.float32) / 4,
        "bias": np.zeros(3, np.float32),
    }


def batch(step):
    """Return inputs (6, 2, 5, 5) and labels of a step."""
    generator = np.random.default_rng(100 + step)
    return generator.standard_normal((6, 2, 5, 5)).astype(np.float32), generator.integers(0, 3, 6)


def train(name):
    """Return losses, and the weights after the last step, as PyTorch computes them."""
    import torch
    from torch.nn import functional

    kind, numbers = OPTIMIZERS[name]
    weights = {key: torch.tensor(value, requires_grad=True) for key, value in start().items()}
    renamed = {key: value for key, value in numbers.items() if key not in ("learning_rate", "beta1", "beta2")}
    if "beta1" in numbers:
        renamed["betas"] = (numbers["beta1"], numbers["beta2"])
    made = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    optimizer, losses = made(weights.values(), lr=numbers["learning_rate"], **renamed), []
    for step in range(STEPS):
        x, labels = map(torch.tensor, batch(step))
        x = functional.conv2d(x, weights["conv"], stride=2)
        x = functional.relu(functional.batch_norm(x, None, None, weights["scale"], weights["shift"], training=True))
        loss = functional.cross_entropy(functional.linear(x.flatten(1), weights["linear"], weights["bias"]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    final = {key: [round(number, 7) for number in value.detach().flatten().tolist()] for key, value in weights.items()}
    return {"losses": losses, "weights": final}


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: train(name) for name in OPTIMIZERS}, indent=1) + "\n")
