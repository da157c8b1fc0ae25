"""Learning from noise: feature strength against noise correlation."""
