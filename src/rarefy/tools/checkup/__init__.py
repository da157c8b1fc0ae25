"""One look at a labelled set: what it is, what is odd in it, what can be learnt from it."""
