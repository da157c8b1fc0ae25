"""How long it takes to learn the signal, or to memorise the noise."""
