#!/usr/bin/env bash
# The documentation builds without a warning: no dead link, no public item left bare.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features -p tidegate -p tidegate-cli

# Links among private items are for those who read the engine; they rot as fast. A target folder of its own keeps
# the public pages as a user will see them.
RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/doc-private" \
    cargo doc --no-deps --document-private-items --lib -p tidegate
