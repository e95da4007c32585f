"""The search for the fastest settings: halving, confirmation, and what they still learn."""
