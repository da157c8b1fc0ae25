"""How alike positive test pairs are, and how much of it the data decide."""
