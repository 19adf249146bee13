"""jetson-stats' jtop service as a power source.

Start at :mod:`.source`. jetson-stats is AGPL-3.0, so :mod:`.client` runs in a process of its own and is never imported.
"""
