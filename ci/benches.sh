#!/usr/bin/env bash
# The benches compile: the criterion ones, the comparison with the peers, and the one of HTTP servers. No figure comes from here; a machine
# that builds something else meanwhile has none to give. benches/README.md says how to take them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo bench -p tidegate --no-run
cargo build --release -p tidegate-peers -p tidegate-http-bench
