"""Lowering of what steps of training have: weights that change, and gradients."""
