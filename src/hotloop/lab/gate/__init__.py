"""The gate: budgets measured against a commit or a baseline, what changed, and since when."""
