"""Routes of the REST API, one module per resource.

A module has a ``router``; a line in :mod:`powerlab_api.app` adds it. Every route declares the role it requires
(:mod:`powerlab_api.roles`). Start at :mod:`.health` for the smallest one, and at :mod:`.sweeps` for a typical one.
"""
