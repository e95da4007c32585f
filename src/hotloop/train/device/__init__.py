"""Training that stays on a GPU: what collects, watches and learns there, recorded once and played back."""
