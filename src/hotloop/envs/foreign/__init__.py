"""The user's environments as subjects: Gymnasium's, PettingZoo's, PufferLib's, and plain objects.

`open` makes a subject of what a target's name leads to. Three modules have the kinds of env: `single` (one
at a time, and models that play themselves), `vector` (many behind one call) and `zoo` (agents with names, and
seats of a game); `deepmind` makes envs of Gymnasium of DeepMind's and OpenSpiel's. They share `subject`
(calls, spans, tapes), `inside` (attributes, spans and errors of their code, random actions and legal ones),
`outputs` (what a step may return, what can be seen of a model, what breaks an interface) and `phases` (what
an env reports of its own steps, functions of the user's in spans).

The trainer takes the same envs as a batch: `training` is the batch and what steps it, `forms` reads and
writes its rows.
"""
