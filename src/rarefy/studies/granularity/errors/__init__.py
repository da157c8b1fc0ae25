"""Why fine labels help: errors on easy and on hard samples."""
