"""How anything is measured: where actions come from, what is timed, rounds, turns, and the record of it."""
