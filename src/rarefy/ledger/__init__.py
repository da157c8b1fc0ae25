"""The ledger: what the papers claim, which readings decide it (declared by hand in one TOML file
per paper), the verdicts last measured, and the answers computed from them."""
