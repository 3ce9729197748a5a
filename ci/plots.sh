#!/usr/bin/env bash
# The pictures of docs/storm.md and docs/replay.md, drawn again. Same sources, same bytes: `git diff --exit-code docs/*.svg`
# after it tells whether the pictures are those of the code; tests of the command do the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo run --release --quiet -p tidegate-cli -- storm --svg docs/storm.svg > /dev/null
cargo run --release --quiet -p tidegate-cli -- replay --svg docs/replay.svg > /dev/null
