"""What is trained: one network a file, every tensor with a leading ``run`` axis."""
