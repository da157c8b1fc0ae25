"""What is seen: measurements on trained weights, and the statistics behind verdicts."""
