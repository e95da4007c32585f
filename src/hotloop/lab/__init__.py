"""The experiments: each one runs something and returns a record of what it found."""
