"""Pages, one file each: ``add_routes(router, store)`` reads the store and hands a template what it prints."""
