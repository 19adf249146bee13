"""What commands print: the console, sweep tables and reports, pages of sections, the progress bar."""
