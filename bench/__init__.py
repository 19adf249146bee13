"""Benchmarks: every claim of speed, memory or exactness in ``docs/`` is what one of these printed.

Each is a module with a command line of its own, run from the top of the checkout: ``python -m bench.engine.vs_peers``.
``make help`` lists the common ones.

- ``engine/``: inference on the processor against other engines: time, loading, changing sizes, beside other work
- ``arm/``: instructions per image on 64-bit Arm, counted under emulation
- ``gpu/``: the engine on GPUs; ``precision/``: low precision; ``training/``: steps, gradients, memory, accuracy
- ``measuring/``: what measuring costs, and how exact ways to compute energy are
- ``search/``: how many runs a search needs; ``claims/``: how often verdicts and gates are wrong
- ``service/`` and ``database/``: a server under load, and one with much data
- ``peers/``: what the comparisons share: turns of engines, paired ratios, tables
"""
