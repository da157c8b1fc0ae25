"""Your own images: features learnt without labels, head and tail."""
