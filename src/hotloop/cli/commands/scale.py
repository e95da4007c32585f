"""hotloop scale: what a target costs against its size, with the law it follows."""

from hotloop.cli import sweeps
from hotloop.cli.console import bar, stdout_kept_clean
from hotloop.cli.results import make_room
from hotloop.cli.targets import reporting
from hotloop.core.target import Target
from hotloop.options.scale import ScaleOptions


def scale(options: ScaleOptions) -> int:
    """Measure every size, keep and show the record; returns its exit code."""
    from hotloop.lab.sweep import scale as lab

    target = Target.typed(options.target, options.words)
    axes = lab.read(reporting(target, options.phases, options.time), options.grid)
    with bar("forecast") as progress, stdout_kept_clean():
        seconds = lab.forecast(axes, options, progress)
    sweeps.announce(len(axes.places) * options.repeats, seconds, yes=options.yes)
    make_room(options.output)
    record = sweeps.swept(
        axes,
        "scale",
        lab.cells_of(axes, options),
        lambda progress, shelf, executor: lab.scale(axes, options, progress, executor=executor, shelf=shelf),
        on=options.on,
        resume=options.resume,
    )
    return sweeps.tell(record, options.output, as_json=options.json)
