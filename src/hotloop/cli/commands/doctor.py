"""hotloop doctor: is this machine fit to measure."""

import json as json_format
from dataclasses import asdict

from hotloop.cli.console import emit, show
from hotloop.cli.flags import Json
from hotloop.core.errors import ExitCode

EXAMPLES = (
    "hotloop doctor",
    "hotloop doctor --json",
)


def doctor(*, json: Json = False) -> int:
    """Check this machine: is it fit to measure, and what is missing?

    Every line is ok, warn or bad, with what to do about it. A bad line means that numbers measured now would
    mean little: the machine is called unfit, and the exit code is 4, cannot tell.
    """
    from hotloop.lab.doctor import examine, gather, is_fit
    from hotloop.report.kinds.listings import doctor as sections
    from hotloop.report.terminal import draw

    facts = gather()
    checks = examine(facts)
    if json:
        answer = {"fit": is_fit(checks), "checks": [asdict(check) for check in checks], "facts": facts}
        emit(json_format.dumps(answer, indent=1) + "\n")
    else:
        show(draw(sections(checks, fit=is_fit(checks))))
    return ExitCode.FINE if is_fit(checks) else ExitCode.CANNOT_TELL
