"""What is of use outside the laboratory: tools for anybody's models and data."""
