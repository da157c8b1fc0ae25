"""The gallery of a score table: one HTML page to look at, pick from and pass on."""

from rarefy.report.gallery.page import GalleryReport as GalleryReport
from rarefy.report.gallery.page import write_gallery as write_gallery
