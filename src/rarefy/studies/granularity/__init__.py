"""Why fine-grained labels help: the hierarchical multi-view model of 004."""
