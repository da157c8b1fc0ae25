"""The page of 000 Table 2, and the one on what happens when SimCLR is trained too long."""

from pages.longtail import overtraining
from pages.longtail.page import files, page

__all__ = ["files", "overtraining", "page"]
