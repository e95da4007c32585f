"""The figures of src that may fall and never rise: how much there is of it, and how it is cut up."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

BUDGET = Path("tools") / "budget.toml"

PACKAGE = Path("src") / "hotloop"

OUTER = ("mcp", "loops", "include", "")
"""Folders that share one budget with the files beside them."""

OUTER_NAME = "mcp, loops, top"

RISING = ("mean_function_length",)
"""Figures that may rise and never fall."""

SHARE = 0.7
"""Of the fields of the smaller of two dataclasses, from which on they are one idea."""

FEWEST_FIELDS = 3
"""Of a dataclass that is compared."""

SHORT_HELPER = 6
"""Lines of a function that is as well written where it is used, if that is one place."""

HEAD = """\
# How much there may be of src, by layer, and how it is cut up. Figures fall and never rise; the mean length
# of functions rises and never falls. `python tools/sizes.py --write` takes what is better over from the tree,
# with `--raise` also what is worse: the commit says why.
"""

Figures = Mapping[str, float]
"""Of one table of the budget."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the package."""

    path: Path
    """Within the package."""
    lines: int
    tree: ast.Module

    @property
    def layer(self) -> str:
        """Return the layer that the module counts for."""
        folder = self.path.parts[0] if len(self.path.parts) > 1 else ""
        return OUTER_NAME if folder in OUTER else folder

    @property
    def name(self) -> str:
        """Return the name that others import it by."""
        parts = ["hotloop", *self.path.with_suffix("").parts]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def functions(self) -> list[Function]:
        """Return every function in it, methods included."""
        return [each for each in ast.walk(self.tree) if isinstance(each, Function)]

    @property
    def classes(self) -> list[ast.ClassDef]:
        """Return its top-level classes."""
        return [each for each in self.tree.body if isinstance(each, ast.ClassDef)]


def read_modules(root: Path) -> list[Module]:
    """Read every module of the package below a root."""
    package = root / PACKAGE
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        found.append(Module(path.relative_to(package), len(text.splitlines()), ast.parse(text)))
    return found


def measure(root: Path) -> dict[str, Figures]:
    """Return the figures of the tree below a root, by table."""
    modules = read_modules(root)
    tables: dict[str, Figures] = {"src": whole_figures(modules)}
    for layer in sorted({each.layer for each in modules}):
        own = [each for each in modules if each.layer == layer]
        tables[layer] = {"lines": sum(each.lines for each in own), "modules": len(own)}
    return tables


def whole_figures(modules: list[Module]) -> Figures:
    """Return the figures of all layers together."""
    lines = sum(each.lines for each in modules)
    lengths = [length_of(function) for each in modules for function in each.functions]
    return {
        "lines": lines,
        "modules": len(modules),
        "functions_per_1000_lines": round(1000 * len(lengths) / max(lines, 1), 1),
        "mean_function_length": round(sum(lengths) / max(len(lengths), 1), 2),
        "class_names_defined_twice": sum(count > 1 for count in Counter(class_names(modules)).values()),
        "dataclass_pairs_alike": sum(1 for _ in pairs_alike(modules)),
        "short_helpers_used_once": sum(1 for _ in short_helpers(modules)),
        "modules_with_one_importer": sum(1 for _ in modules_with_one_importer(modules)),
    }


def length_of(function: Function) -> int:
    """Return the lines of a function without its decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def class_names(modules: list[Module]) -> Iterator[str]:
    """Yield the name of every top-level class."""
    for module in modules:
        yield from (each.name for each in module.classes)


def pairs_alike(modules: list[Module]) -> Iterator[tuple[str, str]]:
    """Yield pairs of dataclasses that share most of the smaller one's fields by name."""
    fields = {
        f"{module.name}.{each.name}": field_names(each)
        for module in modules
        for each in module.classes
        if is_dataclass(each)
    }
    large = {name: names for name, names in fields.items() if len(names) >= FEWEST_FIELDS}
    for (a, names_of_a), (b, names_of_b) in combinations(large.items(), 2):
        if len(names_of_a & names_of_b) >= SHARE * min(len(names_of_a), len(names_of_b)):
            yield a, b


def is_dataclass(kind: ast.ClassDef) -> bool:
    """Return whether a class is declared as a dataclass or a named tuple."""
    words = [ast.unparse(each) for each in (*kind.decorator_list, *kind.bases)]
    return any("dataclass" in word or "NamedTuple" in word for word in words)


def field_names(kind: ast.ClassDef) -> set[str]:
    """Return the names of a class's annotated fields."""
    return {
        each.target.id
        for each in kind.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def short_helpers(modules: list[Module]) -> Iterator[str]:
    """Yield module-level functions of few lines whose name stands once in src beside its definition.

    One that is decorated is registered somewhere, one whose name is a text may be looked up by it, and what
    a package exports is used by others.
    """
    uses = Counter(name for module in modules for name in names_used(module.tree))
    for module in modules:
        for each in module.tree.body:
            if not isinstance(each, Function) or length_of(each) > SHORT_HELPER:
                continue
            if not each.decorator_list and uses[each.name] == 1:
                yield f"{module.name}.{each.name}"


def names_used(tree: ast.Module) -> Iterator[str]:
    """Yield every name that code or a text of one word names, imports left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield from (node.value, node.value)


def modules_with_one_importer(modules: list[Module]) -> Iterator[str]:
    """Yield modules that exactly one other module imports; packages are no idea of their own."""
    known = {each.name for each in modules}
    importers: dict[str, set[str]] = {name: set() for name in known}
    for module in modules:
        for name in imported(module.tree):
            if name in known and name != module.name:
                importers[name].add(module.name)
    for module in modules:
        if module.path.name != "__init__.py" and len(importers[module.name]) == 1:
            yield module.name


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield every module that may be imported, at the top or later."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def read_budget(root: Path) -> dict[str, Figures] | None:
    """Read the budget of a tree; None if it has none."""
    path = root / BUDGET
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else None


def is_worse(name: str, now: float, limit: float) -> bool:
    """Return whether a figure is beyond its limit."""
    return now < limit if name in RISING else now > limit


def overruns(now: Mapping[str, Figures], budget: Mapping[str, Figures]) -> Iterator[str]:
    """Yield a line for each figure that is worse than its budget, and for each that has none."""
    for table, figures in now.items():
        for name, figure in figures.items():
            limit = budget.get(table, {}).get(name)
            words = name.replace("_", " ")
            if limit is None:
                yield f"{BUDGET}: {table} has no budget for its {words} ({figure:,})"
            elif is_worse(name, figure, limit):
                side = "at least" if name in RISING else "at most"
                yield f"{BUDGET}: {table}: {words}: {figure:,}, {side} {limit:,} allowed"


def tighten(now: Mapping[str, Figures], budget: Mapping[str, Figures], *, loosen: bool) -> dict[str, Figures]:
    """Return a budget of today's figures; one that is worse stays as it was, unless it is to be loosened."""
    return {
        table: {
            name: limit_of(name, figure, None if loosen else budget.get(table, {}).get(name))
            for name, figure in figures.items()
        }
        for table, figures in now.items()
    }


def limit_of(name: str, now: float, limit: float | None) -> float:
    """Return the stricter of a figure and its limit; the figure if there is no limit."""
    return now if limit is None or not is_worse(name, now, limit) else limit


def write_budget(root: Path, budget: Mapping[str, Figures]) -> None:
    """Write the budget of a tree, a table a layer."""
    lines = [HEAD]
    for table, figures in budget.items():
        lines.append(f"[{table}]" if table.isidentifier() else f'["{table}"]')
        lines += [f"{name} = {figure}" for name, figure in figures.items()]
        lines.append("")
    (root / BUDGET).write_text("\n".join(lines), "utf-8")
