"""What commands print: tables, reports, sections of a page, the progress bar. Start at :mod:`.sweep_report`."""
