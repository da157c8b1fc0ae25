"""How good frozen features are, for head and for tail: probes, groups of classes, class means."""
