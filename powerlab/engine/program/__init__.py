"""A program.

Kernel calls over tensors with decided layouts and undecided addresses. Code generation writes it, runtime runs it.
"""
