"""The machine code is generated for: instruction-set tier, caches, cores, measured peaks."""
