"""Results made visible: figures, and one HTML page that opens offline."""

from rarefy.report.page import Entry, save_pictures, write_report

__all__ = ["Entry", "save_pictures", "write_report"]
