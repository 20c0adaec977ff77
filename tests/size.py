#!/usr/bin/env python3
"""Counts lines and code tokens of each folder of `src/`, without tests.

    python3 tests/size.py [REVISION]

A token is a word, a number, a string or a punctuation mark outside of comments, so the number of tokens does not depend
on the formatting. Without a git revision, the script counts the working tree.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TOKEN = re.compile(r'b?r#*".*?"#*|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|\w+|[^\w\s]', re.S)
# A test module is always at the end of its file.
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*", re.S | re.M)


def files(revision: str | None) -> dict[str, str]:
    if revision is None:
        return {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "src").rglob("*.rs")}
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", revision, "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.splitlines() if name.endswith(".rs")]
    show = lambda name: subprocess.run(["git", "show", f"{revision}:{name}"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: show(name) for name in names}


def is_test(name: str) -> bool:
    return name.endswith("/tests.rs") or "/tests/" in name


def main() -> None:
    lines, tokens = Counter(), Counter()
    for name, text in files(sys.argv[1] if len(sys.argv) > 1 else None).items():
        if is_test(name):
            continue
        text = TESTS.sub("", text)
        parts = name.split("/")
        folder = parts[1].removesuffix(".rs")
        lines[folder] += text.count("\n")
        tokens[folder] += len(TOKEN.findall(COMMENT.sub("", text)))
    for folder in sorted(lines):
        print(f"{folder:12} {lines[folder]:7} lines {tokens[folder]:8} tokens")
    print(f"{'all':12} {sum(lines.values()):7} lines {sum(tokens.values()):8} tokens")


if __name__ == "__main__":
    main()
