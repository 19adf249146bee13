"""Energy of rails and of the whole board, and what makes it uncertain."""
