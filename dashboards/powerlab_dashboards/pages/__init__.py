"""Pages, one per file: ``add_routes(router, store)`` adds routes that read the store and render a template.

Start at :mod:`.home`.
"""
