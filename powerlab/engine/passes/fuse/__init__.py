"""Passes that join neighbouring nodes into one fused operator."""
