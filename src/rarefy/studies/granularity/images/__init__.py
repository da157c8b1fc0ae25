"""What the studies of pre-training on images share: recipe, numbers, verdicts, charts."""
