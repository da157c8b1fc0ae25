"""How it learns: descent of many runs at once, and the losses it descends on.

The room has the name of a verb: ``rarefy.train(data, keep=0.3)`` trains dense and pruned networks
on images and compares them; its arguments: ``help(rarefy.tools.train_images.train)``.
"""

import sys

# not imported: what stands below must not know what stands above
sys.modules[__name__].__class__ = sys.modules["rarefy"].CallableRoom
