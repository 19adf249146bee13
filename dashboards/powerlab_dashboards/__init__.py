"""The web pages: they read the store and render templates and charts.

Start at :mod:`.router`. A page is a module of :mod:`.pages`, a chart a module of :mod:`.charts`; the markup is in
``templates``, the little script there is in ``static``.
"""
