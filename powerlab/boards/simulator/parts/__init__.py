"""Parts of simulated boards, one per file: each writes and moves the files that a kernel would show.

Start at :mod:`.base`. A part is one module and a line in :mod:`.registry`; a board's TOML file says which it has.
"""
