"""Package data: the claims of the papers, and the verdicts last measured for them."""
