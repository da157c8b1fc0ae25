"""More data of one class: what becomes of the others' tails."""
