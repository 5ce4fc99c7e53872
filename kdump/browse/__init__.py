"""`kdump browse`: a terminal browser. The model (rows, pages, places, browser) does all reading and does not depend on
the terminal; panes, screens and app display it."""
