"""A step of training on many nodes, simulated from one node's recorded steps and a model of the links between them.

Every figure that comes out is ``simulated``, whatever the run that it started from was. Start at :mod:`.simulate`.
"""
