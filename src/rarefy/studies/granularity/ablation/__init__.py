"""What the gain of fine labels needs, and whether fine-tuning keeps it."""
