"""Prints the release notes: the section of a version in CHANGELOG.md, with links that work outside of the repository.

    python3 release/notes.py 0.1.0 --files URL [--image REPOSITORY@DIGEST]

URL is the address of the repository's files at the tag.
"""

import argparse
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def section(changelog, version):
    """The remark in the heading of a version, such as its date, and the text below the heading."""
    heading = re.compile(rf"^## {re.escape(version)} \((.*)\)\n", re.MULTILINE)
    found = heading.search(changelog)
    if not found:
        raise KeyError(f"CHANGELOG.md has no section of {version}, such as '## {version} (2026-12-01)'")
    body, *_ = re.split(r"^## ", changelog[found.end():], maxsplit=1, flags=re.MULTILINE)
    if not body.strip():
        raise KeyError(f"the section of {version} in CHANGELOG.md is empty")
    return found[1], body.strip() + "\n"


def absolute_links(text, files):
    """Makes links to files of the repository absolute."""
    return re.sub(r"\]\((?!#|[a-z]+:)([^)]*)\)", lambda link: f"]({files}/{link[1]})", text)


def notes(changelog, version, files, image=None):
    _, body = section(changelog, version)
    footer = f"\nImage: `{image}`. [How to verify a release](docs/start/installing.md#verify-a-release)\n" if image else ""
    return absolute_links(body + footer, files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--files", required=True, help="address of the repository's files at the tag")
    parser.add_argument("--image", help="the image with its digest")
    arguments = parser.parse_args()
    changelog = (SOURCE / "CHANGELOG.md").read_text()
    print(notes(changelog, arguments.version, arguments.files, arguments.image), end="")


if __name__ == "__main__":
    main()
