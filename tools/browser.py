"""Has a Chromium for the tests of the page, where one can be installed; without one they skip, loudly."""

import os
import shutil
from subprocess import DEVNULL, run

PATIENCE_S = 300


def main() -> None:
    if shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"):
        print("there is a browser")
    elif os.geteuid() != 0 or not shutil.which("apt-get"):
        print("no browser, and none can be installed: tests of the page are skipped")
    else:
        print(
            "chromium is installed"
            if installed()
            else "apt-get has no chromium: tests of the page are skipped"
        )


def installed() -> bool:
    """Whether apt could install one, after fetching its lists where it had none."""
    update = ["timeout", "60", "apt-get", "update", "-q"]
    install = [
        "timeout",
        str(PATIENCE_S),
        "apt-get",
        "install",
        "-y",
        "-q",
        "--no-install-recommends",
        "chromium",
    ]
    return succeeds(install) or (succeeds(update) and succeeds(install))


def succeeds(words: list[str]) -> bool:
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return run(words, env=quiet, stdin=DEVNULL, check=False).returncode == 0


if __name__ == "__main__":
    main()
