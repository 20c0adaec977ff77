"""The version of the source tree. Fails if files disagree about it, or if a tag names another one.

    python3 release/version.py                # prints the version
    python3 release/version.py --tag v0.1.0   # also requires this tag, and a date in CHANGELOG.md
"""

import argparse
import datetime
import pathlib
import re
import sys
import tomllib

import notes

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def stated(cargo_toml, chart_yaml, containerfile):
    """The version in each file that states it."""
    first = lambda pattern, text: (re.search(pattern, text, re.MULTILINE) or [None, None])[1]
    return {
        "Cargo.toml": tomllib.loads(cargo_toml)["workspace"]["package"]["version"],
        "version of the chart": first(r"^version: *(\S+)", chart_yaml),
        "appVersion of the chart": first(r"^appVersion: *(\S+)", chart_yaml),
        "label of the Containerfile": first(r'image\.version="([^"]*)"', containerfile),
    }


def disagreements(versions):
    """One sentence for each file that states another version than Cargo.toml."""
    expected = versions["Cargo.toml"]
    return [f"{file} is {found}, not {expected}" for file, found in versions.items() if found != expected]


def refusals_of_tag(tag, version, changelog):
    """Reasons not to release a version under a tag."""
    reasons = [] if tag == f"v{version}" else [f"the tag is {tag}, and Cargo.toml has {version}"]
    try:
        remark, _ = notes.section(changelog, version)
        datetime.date.fromisoformat(remark)
    except KeyError as error:
        reasons.append(error.args[0])
    except ValueError:
        reasons.append(f"CHANGELOG.md has no date for {version}: write it in place of '{remark}'")
    return reasons


def read(path):
    return (SOURCE / path).read_text()


def current():
    """The version of the source tree."""
    files = ["Cargo.toml", "deploy/helm/cronwheel/Chart.yaml", "deploy/image/Containerfile"]
    versions = stated(*map(read, files))
    if found := disagreements(versions):
        sys.exit("\n".join(found))
    return versions["Cargo.toml"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="the tag of the release")
    arguments = parser.parse_args()
    version = current()
    if arguments.tag and (reasons := refusals_of_tag(arguments.tag, version, read("CHANGELOG.md"))):
        sys.exit("\n".join(reasons))
    print(version)


if __name__ == "__main__":
    main()
