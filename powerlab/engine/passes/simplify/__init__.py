"""Passes that remove or reorder nodes without changing results. Start at :mod:`.dead_nodes`, the simplest."""
