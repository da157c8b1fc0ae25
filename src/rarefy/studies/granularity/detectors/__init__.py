"""Which features are learnt: detectors under coarse and fine labels."""
