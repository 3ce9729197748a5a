#!/usr/bin/env bash
# The benches compile: the criterion ones and the comparison with the peers. No figure comes from here; a machine
# that builds something else meanwhile has none to give. benches/README.md says how to take them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo bench -p tidegate --no-run
cargo build --release -p tidegate-peers
