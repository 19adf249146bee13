"""Every Jetson that can be simulated, under each of its JetPacks, and what its rails are."""

from __future__ import annotations

import pytest

from powerlab.boards.registry import BOARDS

JETSONS = [
    (board.name, jetpack) for board in BOARDS.values() if board.name.startswith("jetson-") for jetpack in board.jetpacks
]
IDS = [f"{name}@{jetpack}" for name, jetpack in JETSONS]
EACH = [
    pytest.param(name, jetpack, marks=[pytest.mark.campaign] * any(name == one for one, _ in JETSONS[:index]))
    for index, (name, jetpack) in enumerate(JETSONS)
]
"""The same, for what does not depend on the JetPack: every board once in the fast tests."""

RAILS = {
    "jetson-agx-xavier": {"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"},
    "jetson-agx-orin": {"VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO"},
    "jetson-orin-nano": {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"},
    "jetson-orin-nx": {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"},
    "jetson-xavier-nx": {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"},
    "jetson-nano": {"POM_5V_IN", "POM_5V_GPU", "POM_5V_CPU"},
    "jetson-tx2": {"VDD_IN", "CPU", "DDR", "GPU", "SOC", "WIFI"},
}
CPU_RAIL = {
    "jetson-agx-xavier": "CPU",
    "jetson-agx-orin": "VDD_CPU_CV",
    "jetson-orin-nano": "VDD_CPU_GPU_CV",
    "jetson-orin-nx": "VDD_CPU_GPU_CV",
    "jetson-xavier-nx": "VDD_CPU_GPU_CV",
    "jetson-nano": "POM_5V_CPU",
    "jetson-tx2": "CPU",
}
JETPACKS = {
    "jetson-agx-xavier": {4, 5},
    "jetson-agx-orin": {5, 6},
    "jetson-orin-nano": {5, 6},
    "jetson-orin-nx": {5, 6},
    "jetson-xavier-nx": {4, 5},
    "jetson-nano": {4},
    "jetson-tx2": {4},
}
