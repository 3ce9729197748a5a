#!/usr/bin/env bash
# Runs every example to its end: one that panics or hangs is a document that lies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

shopt -s nullglob
sources=(examples/*.rs examples/*/main.rs)
if [[ ${#sources[@]} -eq 0 ]]; then
    echo "no examples yet"
    exit 0
fi
# In the profile of the tests, which has built what they need; a twentieth of the flood is enough to see it end well.
export FLOOD="${FLOOD:-2}"
for source in "${sources[@]}"; do
    name=$(basename "${source%/main.rs}" .rs)
    echo "-- example $name"
    cargo build --quiet --profile test --example "$name"
    timeout 120 cargo run --quiet --profile test --example "$name" </dev/null
done
