#!/usr/bin/env bash
# The tests, by the very command that the README gives. The doctests, the README's among them, are part of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo test
