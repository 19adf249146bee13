"""Weights in fewer bits than a float, which kernels make floats in registers: native/engine/kernels/narrow/."""
