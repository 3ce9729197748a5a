#!/usr/bin/env bash
# Formatting, of the workspace and of the fuzz crate outside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --check
echo "formatted"
