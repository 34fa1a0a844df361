"""The tasks, one file each: what the room holds, what varies, the milestones in order."""

from importlib import import_module
from pathlib import Path

for _path in sorted(Path(__file__).parent.glob("*.py")):
    if not _path.name.startswith("_"):
        import_module(f"{__name__}.{_path.stem}")
