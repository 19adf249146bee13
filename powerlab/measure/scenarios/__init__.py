"""MLPerf's scenarios, one per file: how queries arrive, and which latencies are reported.

Start at :mod:`.base`. A scenario is one module and a line in :mod:`.registry`.
"""
