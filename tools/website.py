"""The site: hooks that let mkdocs read our pages as the web shows them, and a look at what was built.

    ./.venv/bin/python tools/website.py

builds the site into build/site, from the pages of docs/ and what they link to elsewhere in the repository,
and follows every link of what was built. Nothing is fetched, and no page asks a browser to fetch anything.
"""

import os
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from subprocess import PIPE, STDOUT, run
from urllib.parse import unquote, urlparse

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
DOCS = "docs"
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
"""Pages of the site that are not in docs/."""

LINK = re.compile(r"(\]\()([^)\s]+)(?=\))")
FENCE = re.compile(r"^```(\w+) ([^\n]+)$", re.MULTILINE)
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) +")
NUMBER = re.compile(r"<td>(?=[-+\d][^<]{0,31}<)((?:[-+\d.,\[\]()%/ ]|\b(?:[kM]|[nµm]?s|[KMG]i?B)\b)+)</td>")
"""A cell of a table with a number, its unit, its interval."""

ELSEWHERE = ("http:", "https:", "//", "mailto:", "data:", "#", "javascript:")


# --- Hooks of mkdocs ------------------------------------------------------------------------------


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and every file that a page links to."""
    pages = [*sorted((ROOT / DOCS).glob("*.md")), *(ROOT / page for page in PAGES)]
    linked = {path for page in pages for path in links_out_of(page)}
    for path in sorted({*PAGES, *linked}):
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    return as_mkdocs_reads_it(markdown, home_of(page.file.src_uri))


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    return NUMBER.sub(r'<td class="number">\1</td>', html)


# --- From the web's Markdown to that of mkdocs ----------------------------------------------------


def home_of(uri: str) -> str:
    """Where a page of the site lies in the repository."""
    return uri if uri in PAGES else f"{DOCS}/{uri}"


def as_mkdocs_reads_it(markdown: str, home: str) -> str:
    """Say the same in the dialect of mkdocs: links between its own folders, names of blocks, lists."""
    parts = FENCED.split(markdown)
    outside = (with_lists(with_links(part, home)) for part in parts[::2])
    inside = (FENCE.sub(titled, part) for part in parts[1::2])
    return "".join(part for pair in zip_longest(outside, inside, fillvalue="") for part in pair)


def titled(fence: re.Match[str]) -> str:
    language, word = fence.groups()
    return f"```{language}" if word == "notest" else f'```{language} title="{word}"'


def links_out_of(page: Path) -> Iterator[str]:
    """The files outside docs/ that a page links to, from the root of the repository."""
    home = page.relative_to(ROOT).as_posix()
    for _, link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        path = target_of(link, home)
        if path is not None and not path.startswith(f"{DOCS}/") and path not in ("", "README.md"):
            yield path


def target_of(link: str, home: str) -> str | None:
    """The file that a link of a page leads to, from the root of the repository."""
    path = link.partition("#")[0]
    if not path or link.startswith(ELSEWHERE):
        return None
    return os.path.normpath(f"{PurePosixPath(home).parent}/{path}")


def with_links(text: str, home: str) -> str:
    return LINK.sub(lambda match: match[1] + moved(match[2], home), text)


def moved(link: str, home: str) -> str:
    """A link between files of the repository as one between pages of the site."""
    path = target_of(link, home)
    if path is None:
        return link
    anchor = link.partition("#")[2]
    there = "index.md" if path == "README.md" else path.removeprefix(f"{DOCS}/")
    here = PurePosixPath(home.removeprefix(f"{DOCS}/")).parent
    return os.path.relpath(there, here) + (f"#{anchor}" if anchor else "")


def with_lists(text: str) -> str:
    """Set lists apart by an empty line and indent what belongs to an item by four, as mkdocs wants it."""
    lines: list[str] = []
    items: list[int] = []
    for line in text.split("\n"):
        item = ITEM.match(line)
        if item:
            if not items and lines and lines[-1].strip():
                lines.append("")
            items = [*(indent for indent in items if indent < len(item[1])), len(item[1])]
        elif line.strip() and not line.startswith(" ") and not (lines and lines[-1].strip()):
            items = []
        depth = len(items) - 1 if item else len(items)
        lines.append(" " * 4 * depth + line.lstrip() if items and line.strip() else line)
    return "\n".join(lines)


# --- What was built -------------------------------------------------------------------------------


class Built(HTMLParser):
    """A page that was built: its anchors, the links it has, and what it makes a browser fetch."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.fetched += [given["src"]] if "src" in given else []
        if tag == "link" and given.get("rel") != "canonical":
            self.fetched += [given["href"]] if "href" in given else []


def broken(site: Path, home: str = "/") -> Iterator[str]:
    """Say which links of a site at `home` lead nowhere, and what a browser would fetch from elsewhere."""
    pages = {path: Built(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in (*page.links, *page.fetched):
            inside = link.replace(home, "/", 1) if link.startswith(home) else link
            if not leads_somewhere(inside, path, site, pages):
                yield f"{path.relative_to(site)}: {link} leads nowhere"
        for url in page.fetched:
            if url.startswith(("http:", "https:", "//")):
                yield f"{path.relative_to(site)}: a browser would fetch {url}"


def leads_somewhere(link: str, path: Path, site: Path, pages: dict[Path, Built]) -> bool:
    if link.startswith(ELSEWHERE) and not link.startswith("#"):
        return True
    where, _, anchor = unquote(link).partition("#")
    base = site if where.startswith("/") else path.parent
    there = Path(os.path.normpath(base / where.lstrip("/"))) if where else path
    there = there / "index.html" if there.is_dir() else there
    if there not in pages or not anchor:
        return there.exists()
    return anchor in pages[there].anchors or anchor.startswith("__")


def build(site: Path) -> str:
    """Build the site; return what was printed, or end with it where there was a warning."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = run(command, cwd=ROOT, env=quiet, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    if done.returncode != 0 or "WARNING" in done.stdout:
        raise SystemExit(done.stdout or 1)
    return done.stdout


def main() -> None:
    build(SITE)
    wrong = list(broken(SITE, urlparse(os.environ.get("SITE_URL", "")).path or "/"))
    if not (SITE / "search" / "search_index.js").exists():
        wrong.append("there is no index for the search")
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"{len(list(SITE.rglob('*.html')))} pages, every link leads somewhere")


if __name__ == "__main__":
    main()
