"""Where the theorems live: boundaries from a hundred dimensions to 10^9."""
