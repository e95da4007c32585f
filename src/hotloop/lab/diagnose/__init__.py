"""What a diagnosis measures: other ways of doing a phase, and what a delay in one part costs the whole."""
