"""What is trained, one network per file: those of the laboratories, whose tensors begin with axis
``run``, and ordinary vision networks (``by_name``)."""
