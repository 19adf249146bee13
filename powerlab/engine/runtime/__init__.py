"""From a program to something that runs: memory arena, native plan, batch slices, listings."""
