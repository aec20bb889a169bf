"""archive.py OUT FOLDER: packs a folder as OUT, a .tar.gz or a .zip, the same bytes each time:
sorted names, one time for all, no owner. Symbolic links stay links in a .tar.gz."""

import gzip
import os
import stat
import sys
import tarfile
import time
import zipfile
from pathlib import Path

TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # 1980, where zip's years begin


def entries(folder: Path) -> "list[Path]":
    """Files and links below a folder, in an order that no file system chose."""
    found = []
    for where, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        found += [Path(where) / name for name in names + links]
    return sorted(found)


def mode_of(path: Path) -> int:
    return 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644


def pack_tar(out: Path, folder: Path) -> None:
    with open(out, "wb") as file, \
            gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=TIME) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in entries(folder):
            info = tarfile.TarInfo(str(path.relative_to(folder.parent)))
            info.mtime = TIME
            if path.is_symlink():
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
                tar.addfile(info)
            else:
                info.size, info.mode = path.stat().st_size, mode_of(path)
                with open(path, "rb") as content:
                    tar.addfile(info, content)


def pack_zip(out: Path, folder: Path) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in entries(folder):
            info = zipfile.ZipInfo(str(path.relative_to(folder.parent)), time.gmtime(TIME)[:6])
            info.create_system = 3  # Unix, whose modes stand in the upper half
            info.external_attr = (stat.S_IFREG | mode_of(path)) << 16
            packed.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    target, source = Path(sys.argv[1]), Path(sys.argv[2])
    (pack_zip if target.suffix == ".zip" else pack_tar)(target, source)
