"""What is made of the chapters beside the pages: copies for students, a pack for instructors, slides, PDFs, times."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def chapters(*names: str) -> list[Path]:
    """The notebooks, or those whose file name starts so."""
    return [path for path in sorted((ROOT / "chapters").glob("*.ipynb")) if not names or path.name.startswith(names)]
