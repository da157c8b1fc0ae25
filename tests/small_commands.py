"""Options that make ``rarefy pretrain`` and ``rarefy probe`` a matter of seconds."""

SMALL = ("digits", "--rho", "8", "--head", "24", "--epochs", "2", "--network", "lenet")
"""102 images, 3 updates an epoch."""
HERE = ("--jobs", "1", "--device", "cpu")
CHEAP = ("--protocols", "knn", "--device", "cpu")
