"""What is left out: scores, masks and update rules as pure functions on tensors."""
