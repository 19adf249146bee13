"""Convolutions and linear layers in bfloat16: see native/engine/kernels/pairs/words.hpp."""
