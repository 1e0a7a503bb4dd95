"""Builds the pages by plain Sphinx into _build/sphinx/html, in an environment of its own: `make sphinx`.

It lies over this environment: what requirements.txt of this folder names is newer there, everything else is the same.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MADE = ROOT / "_build" / "sphinx"


def main() -> None:
    subprocess.run([sys.executable, "-m", "venv", MADE / "env"], check=True)
    python = MADE / "env" / "bin" / "python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    theirs = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    ours = sysconfig.get_path("purelib")
    Path(theirs, "book.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt"], check=True)
    build = [python, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q"]  # warnings are errors
    subprocess.run([*build, "-c", HERE, "-d", MADE / "trees", ROOT, MADE / "html"], check=True)
    print(f"Open {MADE / 'html' / 'book' / 'index.html'}")


if __name__ == "__main__":
    main()
