"""hotloop guide: one page for a coding agent."""

import json as json_format

from hotloop.cli.console import emit
from hotloop.core.errors import ExitCode
from hotloop.options.misc import GuideOptions


def guide(options: GuideOptions) -> int:
    """Print the page."""
    from hotloop.mcp.guide import guide as page

    emit(f"{json_format.dumps({'page': page()})}\n" if options.json else page())
    return ExitCode.FINE
