"""The worlds: each a folder with its twin (the specification), its native rules and its registry entry."""
