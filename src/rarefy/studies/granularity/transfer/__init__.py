"""From the levels of CIFAR-100 to CIFAR-10."""
