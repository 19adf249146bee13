"""Documents for people: a sweep, or sets of runs compared, as HTML, Markdown, LaTeX, pictures and PDF.

What a document says (:mod:`powerlab.reports.sweep`, :mod:`powerlab.reports.comparison`) is put together of blocks
(:mod:`powerlab.reports.blocks`), and every format is a writer of blocks. Pictures are drawn once, as SVG.
"""
