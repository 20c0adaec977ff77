"""Compares the bill of materials of a binary with Cargo.lock and with the binary itself.

The image script derives the bill from cargo's dependency tree. This check does not use that tree: a binary contains the
paths of the source files that its panics name, with the name and version of each crate.
"""

import re
import tomllib

# A binary names more crates. With fewer, the paths have another form, and the check would find nothing.
N_NAMED_MIN = 30
PATH = re.compile(rb"/cargo/registry/src/[^/]+/([A-Za-z0-9_-]+?)-(\d+\.\d+\.\d+[A-Za-z0-9.+-]*)/")


def named_in(binary):
    """Name and version of each crate whose source paths a binary contains."""
    return {(name.decode(), version.decode()) for name, version in PATH.findall(binary)}


def locked(cargo_lock):
    """Name and version of each crate in Cargo.lock."""
    return {(package["name"], package["version"]) for package in tomllib.loads(cargo_lock)["package"]}


def listed(bill):
    """Name and version of each crate in a bill of materials."""
    components = [*bill["components"], bill["metadata"]["component"]]
    return {(part["name"], part["version"]) for part in components if part.get("purl", "").startswith("pkg:cargo/")}


def findings(bill, cargo_lock, binary):
    """One sentence for each crate that the bill lacks or should not have."""
    crates = listed(bill)
    missing = [f"{name} {version} is in the binary, and the bill does not list it"
               for name, version in sorted(named_in(binary) - crates)]
    unknown = [f"{name} {version} is in the bill, and not in Cargo.lock"
               for name, version in sorted(crates - locked(cargo_lock))]
    without = [f"{part['name']} has no licence" for part in bill["components"] if not part.get("licenses")]
    n_named = len(named_in(binary))
    blind = [f"the binary names only {n_named} crates"] if n_named < N_NAMED_MIN else []
    return missing + unknown + without + blind
