"""Energy of rails and of the whole board in a window, with an uncertainty budget.

Start at :mod:`.rail` for one rail and :mod:`.total` for the board. The budget's lines are explained in docs/method.md.
"""
