"""Somebody else's environments as subjects: Gymnasium's, PettingZoo's, PufferLib's, and plain objects.

`open` makes a subject of what a target's name leads to; `kinds` has one file a kind of env. What the
kinds share: `subject` (calls, spans, tapes), `spec` (what they say about themselves), `outputs` (which
values a step may return), `actions` and `masks` (random ones, legal ones), `phases` (what an env says of
its own steps), `conformance` (what its interface forbids), `functions` (of the user's, in spans), `state`
(what can be seen of a model that plays itself), `seats` (whose turn it is in a game, and who won).
`trainable` makes of the same envs the batch that the trainer takes.
"""
