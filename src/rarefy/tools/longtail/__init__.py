"""Learning features of long-tailed images without labels, and saying how good they are."""
