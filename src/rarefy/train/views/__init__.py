"""Two random views of every image, drawn and made on the images' device, all images at once."""

from rarefy.train.views.views import Views as Views
