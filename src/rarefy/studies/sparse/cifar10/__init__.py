"""Does a thinner CNN do better on CIFAR-10?."""
