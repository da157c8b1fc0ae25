"""When fine labels do not help: noisy, misaligned, starved."""
