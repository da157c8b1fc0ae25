"""One vocabulary for what studies claim and show, and what their simulations share."""
