"""A loop of the user's own with spans, run by `hotloop.run`."""

import hotloop

with hotloop.run("my-loop", every=5) as run:
    for _ in range(10):
        with hotloop.span("collect"):
            for _ in range(32):
                action = sum(range(200)) % 2
                hotloop.mark("forward")
                observation = [i * action for i in range(400)]
                hotloop.mark("env.step")
                run.count(steps=1)
        with hotloop.span("learn"):
            loss = sum(range(20_000))
        run.count(updates=1)
