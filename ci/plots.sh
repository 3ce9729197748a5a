#!/usr/bin/env bash
# The picture of docs/storm.md, drawn again. Same sources, same bytes: `git diff --exit-code docs/storm.svg` after it tells
# whether the picture is that of the code; a test of the command does the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo run --release --quiet -p tidegate-cli -- storm --svg docs/storm.svg > /dev/null
