"""Makes the Python environment of benchmarks/vectors.py, and says which Hotloop it uses.

    python tools/vector_environment.py FOLDER [--hotloop CHECKOUT]

Every line of benchmarks/vectors.txt is installed by itself. What pip refuses is left out, and the reason is
in FOLDER/refused.txt. Hotloop is the one of CHECKOUT/.venv, through the single file hotloop.pth of the
environment's site-packages. To switch, run the script again with another checkout; that installs nothing.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "benchmarks" / "vectors.txt"

COMMAND = "import sys\nfrom hotloop.cli.main import main\nsys.exit(main())\n"


def packages() -> list[str]:
    lines = PACKAGES.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last exception that pip printed, or else the last line without its hints."""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    raised = [line for line in lines if "Error: " in line]
    refused = [line for line in lines if line.lower().startswith("error")]
    return (raised or refused or lines or ["pip printed nothing"])[-1]


def pip(python: Path, *words: str, pins: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run pip; with pins, those hold for what a package is built with, too."""
    pinned = {} if pins is None else {"PIP_CONSTRAINT": str(pins)}
    return subprocess.run(
        [python, "-m", "pip", *words],
        env={**os.environ, **pinned},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def install(folder: Path) -> None:
    """Make the environment, and install each package or keep the reason why not."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python, refused = folder / "bin" / "python", []
    pins = folder / "pins.txt"
    pins.write_text("torch==2.13.0\n", "utf-8")
    for package in packages():
        done = pip(python, "install", *package.split(), pins=pins)
        print(f"{package}: {'installed' if done.returncode == 0 else last_line(done)}", flush=True)
        if done.returncode:
            refused.append(f"{package}: {last_line(done)}")
    (folder / "refused.txt").write_text("".join(f"{line}\n" for line in refused), "utf-8")
    conflicts = pip(python, "check")
    (folder / "installed.txt").write_text(pip(python, "freeze").stdout + conflicts.stdout, "utf-8")


def use_hotloop(folder: Path, checkout: Path) -> None:
    """Let the environment find the Hotloop that is installed in a checkout, after its own packages."""
    (theirs,) = (checkout / ".venv" / "lib").glob("python3*/site-packages")
    (ours,) = (folder / "lib").glob("python3*/site-packages")
    (ours / "hotloop.pth").write_text(f"import site; site.addsitedir({str(theirs)!r})\n", "utf-8")
    command = folder / "bin" / "hotloop"
    command.write_text(f"#!{folder.resolve()}/bin/python\n{COMMAND}", "utf-8")
    command.chmod(0o755)
    print(f"{ours / 'hotloop.pth'}: {theirs}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hotloop", type=Path, default=ROOT, metavar="CHECKOUT")
    arguments = parser.parse_args()
    if not (arguments.folder / "installed.txt").exists():
        install(arguments.folder)
    use_hotloop(arguments.folder, arguments.hotloop.resolve())


if __name__ == "__main__":
    main()
