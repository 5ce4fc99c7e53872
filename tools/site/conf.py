"""Sphinx, for `make site`. Fonts are the reader's own, scripts lie in the site: it opens without a network."""

from kdump import __version__

project = "kdump"
release = version = __version__
copyright = "the authors of kdump, Apache-2.0"
language = "en"
smartquotes = False  # --option stays --option

extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "kdump"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # which would be fetched, and opened from a disk cannot be
html_static_path = ["static"]
html_css_files = ["kdump.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
