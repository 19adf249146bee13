"""Charts: pure functions from domain objects to Plotly figures, one chart per file.

A figure is a plain Plotly JSON dictionary, so it works in the dashboard, a report, or a notebook, for which
:mod:`powerlab_dashboards.notebook` finds the data.

A new chart is one file with a ``CHART`` and one line in :mod:`powerlab_dashboards.charts.registry`.
"""
