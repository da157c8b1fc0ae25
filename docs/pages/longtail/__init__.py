"""The page of 000 Table 2."""

from pages.longtail.page import files, page

__all__ = ["files", "page"]
