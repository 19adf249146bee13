"""Engines that train: a module for each, of the engine's name.

Each offers ``load`` as a module of :mod:`powerlab.backends` does: what it loads gives a batch with its labels as its
inputs, and a run is one step of training, whose output is the loss before it.
"""
