"""Does long training on few samples lose rare features, and does a masked branch keep them?"""
