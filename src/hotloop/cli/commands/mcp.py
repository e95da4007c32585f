"""hotloop mcp: the commands as tools of a coding agent."""

import json as json_format
from pathlib import Path

from hotloop.cli.console import emit
from hotloop.core.errors import ExitCode
from hotloop.core.machine import need
from hotloop.options.misc import McpOptions


def mcp(options: McpOptions) -> int:
    """Serve the tools, or print them."""
    need("mcp")
    from hotloop.mcp.server import serve, tools

    if options.json:
        emit(f"{json_format.dumps(tools(Path.cwd()), indent=1)}\n")
    else:
        serve(Path.cwd())
    return ExitCode.FINE
