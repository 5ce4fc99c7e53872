"""Sphinx configuration for `make site`. The website needs no network: it uses the fonts of the system and contains its
scripts."""

from kdump import __version__

project = "kdump"
release = version = __version__
copyright = "the authors of kdump, Apache-2.0"
language = "en"
smartquotes = False  # keeps --option as it is

extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "kdump"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # a summary fetches the page, which fails for a page opened from disk
html_static_path = ["static"]
html_css_files = ["kdump.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
