"""Charts: pure functions from domain objects to Plotly figures, one chart a file.

A figure is the plain JSON dictionary Plotly draws, so the same one goes into the dashboard, a report or a notebook::

    import plotly.graph_objects as go
    from powerlab_dashboards.charts.registry import SWEEP_CHARTS
    from powerlab_dashboards.charts.theme import View

    chart = SWEEP_CHARTS["efficiency-heatmap"]
    go.Figure(chart.build(summaries, View()))

A new chart is one file with a ``CHART`` and one line in :mod:`powerlab_dashboards.charts.registry`.
"""
