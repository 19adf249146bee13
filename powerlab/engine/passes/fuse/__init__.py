"""Passes that fuse neighbouring nodes, one pattern per file. Start at :mod:`.activations`, the simplest."""
