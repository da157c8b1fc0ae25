"""Real images: known sets by name, folders of class folders, all in memory as uint8."""

from rarefy.data.images.catalog import load_images as load_images
from rarefy.data.images.image_set import ImageData as ImageData
from rarefy.data.images.image_set import ImageSet as ImageSet
