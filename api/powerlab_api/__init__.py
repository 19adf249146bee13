"""The FastAPI service: ``create_app(store)`` in :mod:`powerlab_api.app`; one module a resource in ``routes``."""
