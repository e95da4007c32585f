"""Arithmetic that twins share with the engine, exact to the bit on every machine."""
