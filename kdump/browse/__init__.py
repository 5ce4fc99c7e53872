"""`kdump browse`: a terminal browser. The model (rows, pages, places, browser) knows nothing of a terminal and reads
what is looked at; panes, screens and app show it."""
