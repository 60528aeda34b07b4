"""What pods mount: Secrets and ConfigMaps as the kubelet writes them, with links that change in one step."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: What Kubernetes gives files without a mode of their own.
_MODE = 0o644


def data_of(document: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a Secret or a ConfigMap."""
    if document["kind"] == "ConfigMap":
        return {name: text.encode() for name, text in (document.get("data") or {}).items()}
    files = {name: base64.b64decode(text) for name, text in (document.get("data") or {}).items()}
    return files | {name: text.encode() for name, text in (document.get("stringData") or {}).items()}


def write_projected(folder: Path, files: Mapping[str, bytes], mode: int, group: int | None) -> None:
    """Write files into a new folder beside the old one, and let the link ``..data`` lead to it."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="..2026_", dir=folder))
    for name, content in files.items():
        path = made / name
        path.write_bytes(content)
        if group is not None:
            os.chown(path, 0, group)
            mode |= 0o440
        path.chmod(mode)
    before = (folder / "..data").readlink() if (folder / "..data").is_symlink() else None
    (folder / "..data_tmp").symlink_to(made.name)
    (folder / "..data_tmp").rename(folder / "..data")
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    for path in folder.iterdir():
        if not path.name.startswith("..") and path.name not in files:
            path.unlink()
    if before is not None:
        shutil.rmtree(folder / before)
    made.chmod(0o755)


def write_empty(folder: Path, group: int | None) -> None:
    """Make an emptyDir: all may write to it."""
    folder.mkdir(parents=True)
    if group is not None:
        os.chown(folder, 0, group)
    folder.chmod(0o2777 if group is not None else 0o777)


def chosen(files: Mapping[str, bytes], source: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that the volume wants, under their names there."""
    if items := source.get("items"):
        return {item["path"]: files[item["key"]] for item in items}
    return dict(files)


def mode_of(source: Mapping[str, Any]) -> int:
    return int(source.get("defaultMode", _MODE))
