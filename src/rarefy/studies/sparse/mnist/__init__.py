"""Does a thinner CNN do better on MNIST?."""
