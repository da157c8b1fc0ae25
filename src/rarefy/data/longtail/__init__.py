"""Long-tailed parts of labelled image sets: how many, of which classes, exactly which images."""

from rarefy.data.longtail.order import class_order as class_order
from rarefy.data.longtail.split import LongTailSplit as LongTailSplit
from rarefy.data.longtail.split import control as control
from rarefy.data.longtail.split import make_split as make_split
from rarefy.data.longtail.split_file import load_split as load_split
from rarefy.data.longtail.split_file import save_split as save_split
