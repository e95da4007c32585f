"""Parts of the farm that are measured by themselves, one a file."""
