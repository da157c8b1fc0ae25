"""What happens inside SimCLR when it is trained too long?."""
