"""hotloop guide: one page for a coding agent."""

import json as json_format

from hotloop.cli.console import emit
from hotloop.cli.flags import Json
from hotloop.core.errors import ExitCode

EXAMPLES = ("hotloop guide", "hotloop guide --json")


def guide(*, json: Json = False) -> int:
    """Print a page for coding agents: faster, without fooling oneself."""
    from hotloop.mcp.guide import guide as page

    emit(f"{json_format.dumps({'page': page()})}\n" if json else page())
    return ExitCode.FINE
