"""How the loss falls, and what filters memorise on the way."""
