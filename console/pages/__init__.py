"""One file for each page, or for pages that belong together."""
