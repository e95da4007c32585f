"""One of our targets in a worker process: a batch of worlds."""

import hotloop
from hotloop.core.code import version
from interleaved.batches import stepper_of
from interleaved.worker import serve, settings


def main() -> None:
    given = settings()
    batch = hotloop.make(
        given["target"],
        num_envs=given["worlds"],
        impl="native",
        threads=given["threads"],
        **given["parameters"],
    )
    stepper = stepper_of(batch)
    stepper.warm_up(given["warmup_calls"])
    facts = {
        "version": version(),
        "worlds": given["worlds"],
        "build": batch.spec.build,
        "warmup_counters": batch.counters,
    }
    serve(stepper.measure, facts)


if __name__ == "__main__":
    main()
