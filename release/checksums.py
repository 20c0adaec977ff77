"""Prints the SHA-256 of each file in a folder, in the form that `sha256sum --check` reads.

    python3 release/checksums.py DIR > SHA256SUMS
"""

import hashlib
import pathlib
import sys


def checksums(folder):
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(checksums(pathlib.Path(sys.argv[1])), end="")
