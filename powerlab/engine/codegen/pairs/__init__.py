"""Convolutions and linear layers in 16-bit floats: see native/engine/kernels/pairs/words.hpp."""
