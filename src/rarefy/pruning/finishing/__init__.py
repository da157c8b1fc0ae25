"""What is done with a pruned model afterwards: renewed statistics, smaller layers, 2:4 kernels."""
