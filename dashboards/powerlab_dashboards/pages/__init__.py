"""Pages, one file each: ``add_routes(router, store)`` adds routes that read the store and render a template."""
