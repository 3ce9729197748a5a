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
for source in "${sources[@]}"; do
    name=$(basename "${source%/main.rs}" .rs)
    echo "-- example $name"
    cargo build --quiet --example "$name"
    timeout 60 cargo run --quiet --example "$name" </dev/null
done
