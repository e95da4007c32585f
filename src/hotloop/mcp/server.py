"""The server: commands as tools with typed arguments, one measurement at a time, in one folder.

Each runs in a process of its own, heard as it goes, and interrupted as by Ctrl-C.
"""

import functools
import json
import os
import re
import shlex
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from mcp.types import Tool as McpTool
from pydantic import Field, ValidationError

from hotloop.core.errors import ExitCode, HotloopError, InputError
from hotloop.core.files import VARIABLE, confined, save
from hotloop.core.machine import version
from hotloop.core.process.supervisor import STEP_S, ExitReport, StandstillLimits, Supervisor
from hotloop.core.progress import SIGNALS
from hotloop.core.record import Record, read
from hotloop.judge import diagnose as judge
from hotloop.judge.judge import broken_off
from hotloop.mcp import answers, guide
from hotloop.mcp.folder import AMOUNT, MODE, Folder, Keys
from hotloop.options.bench import BenchOptions
from hotloop.options.compare import CompareOptions
from hotloop.options.diagnose import DiagnoseOptions
from hotloop.options.option import Options, spell, tool_help
from hotloop.options.profile import ProfileOptions
from hotloop.options.validate import ValidateOptions
from hotloop.report.files import Entry, Shelf, read_shelf
from hotloop.stats.summary import with_metrics

INSTRUCTIONS = """Hotloop measures, profiles, compares and validates reinforcement-learning simulations.
Call `guide` first: it is one page on how to make a simulation faster and how not to fool oneself.
A target is a preset such as grid/toy, a registered id such as gym:CartPole-v1, or a callable that makes an
environment, my_env.py:make, of a file in this folder. Measurements run one at a time."""

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

# Runs the target, and writes nothing but its record, under artifacts or .design; it overwrites none.
MEASURES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

# What comes with a record.
VERDICTS = (
    ExitCode.FINE,
    ExitCode.UNSTABLE,
    ExitCode.MISMATCH,
    ExitCode.REGRESSION,
    ExitCode.CANNOT_TELL,
    ExitCode.INTERRUPTED,
)

RECORDS = ("artifacts/throughput", ".design")

# The command line, saying what it says over its lifeline.
PROGRAM = ("-P", "-c", "from hotloop.cli.isolated import main; main()")

# A command's time to save its record once it is interrupted: clients kill a server soon after SIGTERM.
STOP_S = 1.5

LOOK_S = 0.1  # Between two looks at how far a command is

# Told how far a command is, of how much, and what it is at.
Moved = Callable[[float, float, str], Awaitable[None]]

Tool = Callable[..., Awaitable[Any]]

Caller = Context[Any, Any]

Name = Annotated[str, Field(description=tool_help(BenchOptions, "target"))]

KeyValues = Annotated[
    dict[str, str | int | float | bool] | None,
    Field(description='What the target is made with, such as {"num_envs": 64}.'),
]

Player = Annotated[str, Field(description=tool_help(BenchOptions, "policy"))]

Effort = Annotated[
    Literal["quick", "usual", "thorough"],
    Field(description="quick for a first look, thorough for a number to keep."),
]

EnvSteps = Annotated[int | None, Field(gt=0, description=tool_help(ProfileOptions, "steps"))]

Functions = Annotated[list[str] | None, Field(description=tool_help(ProfileOptions, "time"))]

Seconds = Annotated[float | None, Field(gt=0, description=tool_help(CompareOptions, "budget"))]

Phases = Annotated[bool, Field(description=tool_help(CompareOptions, "profile"))]

Against = Annotated[str, Field(description=tool_help(ValidateOptions, "against"))]

Amount = Annotated[int | str, Field(description="smoke (about a minute), soak, or a number of env-steps.")]

Mode = Annotated[str, Field(description=tool_help(ValidateOptions, "mode"))]

Statistical = Annotated[bool, Field(description=tool_help(ValidateOptions, "statistical"))]

RecordFile = Annotated[str | None, Field(description=tool_help(DiagnoseOptions, "record"))]

Before = Annotated[str | None, Field(description=tool_help(DiagnoseOptions, "since"))]

Where = Annotated[
    str | None, Field(description="A folder of records; artifacts/throughput and .design if left out.")
]

Latest = Annotated[int, Field(gt=0, description="How many.")]

Part = Annotated[str | None, Field(description="Only of targets whose name contains this.")]

World = Annotated[str | None, Field(description="One world, such as grid, with its parameters.")]


@dataclass(slots=True)
class OutputBuffer:
    """What a command says; its own thread writes here, and the one that waits for it reads."""

    out: str = ""
    err: str = ""
    stage: int = 0  # Stretches of work that are done, each with a label of its own
    label: str = ""
    share: float = 0.0
    over: bool = False

    def said(self, stream: str, text: str) -> None:
        if stream == "out":
            self.out += text
        else:
            self.err += text

    def printed(self, text: str) -> None:
        """User code prints for no reader here."""

    def moved(self, label: str, done: int, total: int) -> None:
        if label != self.label:
            self.stage += bool(self.label)
            self.label, self.share = label, 0.0
        self.share = max(self.share, done / total if total else 0.0)

    @property
    def far(self) -> tuple[float, float, str]:
        """Never less than before, as the protocol wants it."""
        return self.stage + min(self.share, 1.0), self.stage + 1.0, self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What became of a command."""

    code: int
    out: str
    err: str
    why: str | None = None  # What ended it where it did not end by itself
    rest: Path | None = None  # The file of what a command had measured when its process was ended
    saved: tuple[str, ...] = field(default_factory=tuple)

    @property
    def last_words(self) -> str:
        """The line that says what was wrong."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return self.why or (lines[-1].removeprefix("hotloop: ") if lines else "it said nothing")


# Saves the record, as JSON, of a process that was ended; it is given the exit code and the reason.
Keep = Callable[[str, ExitCode, str | None], Path]


async def run(words: Sequence[str], moved: Moved, root: Path, keep: Keep) -> CommandResult:
    """Run a command line confined to a folder; a cancellation interrupts it and keeps what it measured."""
    output, limits = OutputBuffer(), StandstillLimits(step_s=STEP_S, stop_s=STOP_S)
    environment = {VARIABLE: str(root)}
    supervisor = Supervisor(" ".join(words[:2]), [*PROGRAM, *words], limits, output, environment)

    def watched() -> CommandResult:
        try:
            ended = supervisor.run()
        finally:
            output.over = True
        return result_of(output, ended, keep)  # in this thread, which a cancellation waits for

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, output, supervisor, moved)
        told = await to_thread.run_sync(watched)
        tasks.cancel_scope.cancel()
    return told


async def follow(output: OutputBuffer, supervisor: Supervisor, moved: Moved) -> None:
    """Pass on how far it is; where this is cancelled before the command is over, interrupt that."""
    last: tuple[float, float, str] | None = None
    try:
        while not output.over:
            if output.label and output.far != last:
                last = output.far
                await moved(*last)
            await anyio.sleep(LOOK_S)
    finally:
        if not output.over:
            supervisor.interrupt()


def result_of(output: OutputBuffer, ended: ExitReport, keep: Keep) -> CommandResult:
    """Return what became of a command, and save the record that it could not save itself."""
    code = ExitCode.INTERRUPTED if ended.interrupted else ExitCode.USAGE
    return CommandResult(
        code=code if ended.code is None else ended.code,
        out=output.out,
        err=output.err,
        why=ended.why if ended.code is None else None,
        rest=None if ended.record is None else keep(ended.record, code, ended.why),
        saved=tuple(re.findall(r"^saved (\S+)$", output.err, re.MULTILINE)),
    )


class StrictServer(MCPServer[Any]):
    """A server that takes no argument it does not know: without it, something else would be measured."""

    async def list_tools(self) -> list[McpTool]:
        closed = {"additionalProperties": False}
        tools = await super().list_tools()
        return [each.model_copy(update={"input_schema": each.input_schema | closed}) for each in tools]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Caller | None = None
    ) -> CallToolResult | InputRequiredResult:
        taken = {each.name: each.input_schema["properties"] for each in await self.list_tools()}
        strays = [each for each in arguments if each not in taken.get(name, arguments)]
        if strays:
            known = ", ".join(taken[name]) or "nothing"
            raise ToolError(
                f"{name} takes no {strays[0]!a}: it takes {known}; what a target is made with, as keys"
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                firsts = {each["loc"][0]: each["msg"] for each in reversed(error.__cause__.errors())}
                said = (f"{argument}: {msg[0].lower()}{msg[1:]}" for argument, msg in sorted(firsts.items()))
                raise ToolError(f"{name} cannot be called so: {'; '.join(said)}") from None
            raise


class ToolServer:
    """The tools, and the folder they work in."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root.resolve())
        self._turn = anyio.Lock()
        self._running = 0  # Commands that have not ended
        self.mcp = StrictServer(
            "hotloop", instructions=INSTRUCTIONS, version=version(), log_level="WARNING", subscriptions=False
        )
        reading: tuple[Tool, ...] = (self.worlds, self.diagnose, self.report, self.guide)
        measuring: tuple[Tool, ...] = (self.bench, self.profile, self.compare, self.validate)
        for tool in (*reading, *measuring):
            self.mcp.add_tool(with_refusals(tool), annotations=READS if tool in reading else MEASURES)
        self.mcp.resource("hotloop://guide", mime_type="text/markdown")(guide)

    async def guide(self) -> str:
        """One page: how to make a simulation faster with Hotloop, and how not to fool oneself."""
        return guide()

    async def worlds(self, context: Caller, world: World = None) -> answers.WorldsAnswer:
        """What ships to be measured: worlds with their presets and players, and the parameters of one."""
        words = [] if world is None else [self.folder.word(world, "the world")]
        done = await self._run(context, ["worlds", *words])
        known: dict[str, dict[str, Any]] = json.loads(done.out)
        return answers.WorldsAnswer(
            worlds=[answers.world(name, facts, detailed=world is not None) for name, facts in known.items()]
        )

    async def bench(
        self,
        context: Caller,
        target: Name,
        keys: KeyValues = None,
        policy: Player = "random",
        effort: Effort = "usual",
    ) -> answers.BenchAnswer:
        """How fast a target steps, with the interval of its median over rounds."""
        options = BenchOptions(
            target=self.folder.target(target),
            words=self.folder.keys(keys),
            policy=self.folder.policy(policy),
            quick=effort == "quick",
            thorough=effort == "thorough",
        )
        return answers.bench_answer(*await self._measured(context, "bench", options))

    async def profile(
        self,
        context: Caller,
        target: Name,
        keys: KeyValues = None,
        policy: Player = "random",
        steps: EnvSteps = None,
        functions: Functions = None,
    ) -> answers.ProfileAnswer:
        """Where the time of a step goes: rows with their shares, and the hot functions in somebody's code."""
        options = ProfileOptions(
            target=self.folder.target(target),
            words=self.folder.keys(keys),
            policy=self.folder.policy(policy),
            steps=steps,
            time=self.folder.functions(functions or ()),
        )
        return answers.profile_answer(*await self._measured(context, "profile", options))

    async def compare(
        self,
        context: Caller,
        a: Name,
        b: Name,
        a_keys: KeyValues = None,
        b_keys: KeyValues = None,
        seconds: Seconds = None,
        phases: Phases = False,
    ) -> answers.CompareAnswer:
        """Whether B is faster than A, measured in turns, after both have given the same bytes."""
        one, other = self._side(a, a_keys), self._side(b, b_keys)
        options = CompareOptions(a=one, b=other, budget=seconds, profile=phases)
        return answers.compare_answer(*await self._measured(context, "compare", options))

    async def validate(
        self,
        context: Caller,
        candidate: Name,
        against: Against = "reference",
        keys: KeyValues = None,
        against_keys: KeyValues = None,
        amount: Amount = "smoke",
        mode: Mode = "bytes",
        statistical: Statistical = False,
    ) -> answers.ValidateAnswer:
        """Whether a candidate does the same as its reference, at every step, and where it first does not.

        Where bytes cannot be equal, `statistical` compares distributions in pairs of episodes instead.
        """
        is_target = ":" in against or "/" in against
        options = ValidateOptions(
            target=self.folder.target(candidate),
            words=[self.folder.word(str(amount), "the amount", AMOUNT), *self.folder.keys(keys)],
            against=self._side(against, against_keys)
            if is_target
            else self.folder.word(against, "the reference"),
            mode=self.folder.word(mode, "the mode", MODE),
            statistical=statistical,
        )
        return answers.validate_answer(*await self._measured(context, "validate", options))

    async def diagnose(self, record: RecordFile = None, since: Before = None) -> answers.DiagnoseAnswer:
        """What bounds the speed of a profile, what to change first, and what each change would buy."""
        path = self.folder.path(record) if record else self._newest()
        with confined(self.folder):
            found = with_metrics(read(path))
            before = with_metrics(read(self.folder.path(since))) if since else None
        changed = judge.since(before, found, judge.diagnose(before).candidates) if before else None
        file = str(path.relative_to(self.folder.root))
        return answers.diagnose_answer(judge.diagnose(found, file=file), file, changed)

    async def report(
        self, folder: Where = None, latest: Latest = 20, target: Part = None
    ) -> answers.ReportAnswer:
        """The records of this folder in one line each, the newest first."""
        shelf = self._shelf([folder] if folder else RECORDS)
        chosen = [each for each in shelf.entries if (target or "") in each.record.target.words]
        return answers.ReportAnswer(
            records=[answers.line(each.record, self._file(each)) for each in chosen[::-1][:latest]],
            left_out=list(shelf.left_out),
        )

    def _side(self, name: str, keys: Keys | None) -> str:
        return shlex.join([self.folder.target(name), *self.folder.keys(keys)])

    def _shelf(self, folders: Sequence[str]) -> Shelf:
        """Return the records of some folders."""
        with confined(self.folder):
            return read_shelf([self.folder.path(each) for each in folders])

    def _newest(self) -> Path:
        """The newest record that says where time went."""
        shelf = self._shelf(RECORDS)
        kept = [each.path for each in shelf.entries if each.record.kind in judge.KINDS and each.path]
        if not kept:
            raise InputError("there is nothing here to diagnose: profile a target first")
        return kept[-1].resolve()

    def _file(self, entry: Entry) -> str:
        return str(entry.path.resolve().relative_to(self.folder.root)) if entry.path else ""

    async def _measured(self, context: Caller, command: str, options: Options) -> tuple[Record, str | None]:
        """Return the record of a measurement, and its file."""
        self.folder.check_written()
        if self._turn.locked():
            await context.report_progress(0, None, "another measurement goes first")
        async with self._turn:
            done = await self._run(context, [command, *spell(options)])
        files = [str(Path(each).with_suffix(".json")) for each in done.saved]
        kept = (each for each in files if (self.folder.root / each).is_file())
        return Record.from_json(done.out), next(kept, None)

    async def _run(self, context: Caller, words: Sequence[str]) -> CommandResult:
        """What a command said; what it refused is raised with its own line."""
        asked = [*words, "--json"]
        self._running += 1
        try:
            done = await run(asked, context.report_progress, self.folder.root, self._keep)
        finally:
            self._running -= 1
        if done.code not in VERDICTS or not done.out:
            measured = f"; what was measured by then is in {self._name(done.rest)}" if done.rest else ""
            raise InputError(f"{done.last_words}{measured}")
        return done

    def _keep(self, text: str, code: ExitCode, why: str | None) -> Path:
        """Save what was measured before a process was ended; return the file."""
        record = broken_off(Record.from_json(text), code, why)
        return save(self.folder.root / RECORDS[0] / f"{record.run_id}.json", record.to_json())

    def _name(self, file: Path) -> Path:
        """Return a file's path as a client of this folder reads it."""
        return file.resolve().relative_to(self.folder.root)

    async def serve(self) -> None:
        """Serve one client on stdin and stdout, until it goes or a signal ends the server."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_on_signal, tasks.cancel_scope)
            await self.mcp.run_stdio_async()
            tasks.cancel_scope.cancel()

    async def _end_on_signal(self, serving: anyio.CancelScope) -> None:
        """Wait for a signal, interrupt what is measured so that its record is kept, and end the process."""
        heard = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*heard) as signals:
            await anext(aiter(signals))
            serving.cancel()
            with anyio.CancelScope(shield=True):
                while self._running:
                    await anyio.sleep(LOOK_S)
        os._exit(ExitCode.INTERRUPTED)  # a thread still waits for the client's next line


def with_refusals(tool: Tool) -> Tool:
    """Return a tool whose refusals the agent reads: one line that says what was wrong and what to do."""

    @functools.wraps(tool)
    async def called(*given: Any, **named: Any) -> Any:
        try:
            return await tool(*given, **named)
        except HotloopError as error:
            raise ToolError(str(error)) from None

    return called


def serve(root: Path) -> None:
    """Serve one client on stdin and stdout, until it goes or a signal ends the server."""
    anyio.run(ToolServer(root).serve)


def tools(root: Path) -> list[dict[str, Any]]:
    """What a client is told of the tools."""
    known = anyio.run(ToolServer(root).mcp.list_tools)
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in known]
