"""What every other room stands on: contracts, randomness, errors, settings, progress."""
