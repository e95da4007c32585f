"""Somebody else's environments as subjects: Gymnasium's, PettingZoo's, PufferLib's, and plain objects.

`opening` makes a subject of what a target's name leads to. One file a kind of env: `single`, `several`,
`vector`, `seeded`, `zoo`, `rows`, `tensors`, `model`; `dm` makes Gymnasium's of DeepMind's. What the kinds
share: `answering` (calls, spans, tapes), `spec` (what they say about themselves), `actions` and `masks`
(random ones, legal ones), `phases` (what an env says of its own steps), `examine` (what its interface
forbids), `functions` (of the user's, in spans).

`trainable` makes of the same envs the batch that the trainer takes: `members` are its rows, `crew` steps
them, `spaces` turns observations and actions into rows and back, and `mirror` lets what was trained play
a subject.
"""
