"""Where power traces lie: one store a file, chosen by an address in :mod:`powerlab.store.traces.registry`."""
