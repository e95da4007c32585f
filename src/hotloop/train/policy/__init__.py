"""What acts: networks, the policy over them, how its outputs become actions, and a trained run that plays."""
