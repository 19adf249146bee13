"""Charts: pure functions from domain objects to Plotly figures, one chart per file.

A figure is a plain Plotly JSON dictionary, so it works in the dashboard, a report or a notebook::

    import plotly.graph_objects as go
    from powerlab_dashboards.charts.registry import SWEEP_CHARTS
    from powerlab_dashboards.charts.theme import View

    chart = SWEEP_CHARTS["efficiency-heatmap"]
    go.Figure(chart.build(summaries, View()))

A new chart is one file with a ``CHART`` and one line in :mod:`powerlab_dashboards.charts.registry`.
"""
