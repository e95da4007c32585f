"""Pictures: stacks as flames, moments of a run as a film."""
