"""What is trained, one network a file: those of the laboratories, whose tensors begin with the axis
``run``, and ordinary vision networks (``by_name``)."""
