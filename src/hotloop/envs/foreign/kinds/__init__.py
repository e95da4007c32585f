"""The kinds of environment that other people write, as subjects.

`single` and `several` step one env and a list of them, `vector` Gymnasium's vector envs, `seeded` batches
that are seeded apart from their reset, `zoo` PettingZoo's, `rows` PufferLib's, `tensors` torchrl's,
`model` what plays itself; `dm` and `spiel` make Gymnasium's envs of DeepMind's and of OpenSpiel's.
"""
