"""Helpers of the engine's tests: a judge in numpy, ONNX Runtime as a second judge, and small ONNX models."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "quantization"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
