"""Somebody's envs as a batch that the trainer takes.

`trainable` is the batch, `members` are its rows, `crew` steps them, `whole` steps a batch of the user's own,
`spaces` turns observations and actions into rows and back, and `mirror` lets what was trained play a subject.
"""
