"""The REST API as a FastAPI application.

Start at :func:`powerlab_api.app.create_app`; resources are in :mod:`.routes`, roles in :mod:`.roles`, errors (RFC 9457)
in :mod:`.problems`.
"""
