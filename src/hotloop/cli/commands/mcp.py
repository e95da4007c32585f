"""hotloop mcp: the commands as tools of a coding agent."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from hotloop.cli.console import emit
from hotloop.core.errors import ExitCode
from hotloop.core.packages import need

EXAMPLES = ("hotloop mcp", "hotloop mcp --json")

Tools = Annotated[bool, typer.Option("--json", help="Print the tools and their schemas instead of serving.")]


def mcp(*, json: Tools = False) -> int:
    """Offer the commands to a coding agent (Model Context Protocol).

    It talks over stdin and stdout. The agent gets worlds, bench, profile, compare, validate, diagnose, report
    and guide as tools with typed arguments and short answers; long ones report progress and can be cancelled.
    Everything happens in the folder it is started in: a path outside it is refused, and nothing but records
    is written. Needs the package mcp: pip install 'hotloop[mcp]'.
    """
    need("mcp")
    from hotloop.mcp.server import serve, tools

    if json:
        emit(f"{json_format.dumps(tools(Path.cwd()), indent=1)}\n")
    else:
        serve(Path.cwd())
    return ExitCode.FINE
