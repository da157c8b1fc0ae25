"""Before training: imbalance leaves hardly any lucky neurons."""
