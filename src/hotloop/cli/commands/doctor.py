"""hotloop doctor: is this machine fit to measure."""

import json as json_format
from dataclasses import asdict

from hotloop.cli.console import emit, show
from hotloop.core.errors import ExitCode
from hotloop.options.misc import DoctorOptions


def doctor(options: DoctorOptions) -> int:
    """Examine this machine; returns 4 if it is not fit to measure."""
    from hotloop.lab.doctor import examine, gather, is_fit
    from hotloop.report.kinds.listings import doctor as sections
    from hotloop.report.terminal import draw

    facts = gather()
    checks = examine(facts)
    if options.json:
        answer = {"fit": is_fit(checks), "checks": [asdict(check) for check in checks], "facts": facts}
        emit(json_format.dumps(answer, indent=1) + "\n")
    else:
        show(draw(sections(checks, fit=is_fit(checks))))
    return ExitCode.FINE if is_fit(checks) else ExitCode.CANNOT_TELL
