#!/usr/bin/env bash
# What crates.io would get: the library builds from its own package alone, and the command's package is whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo package -p tidegate -p tidegate-cli --allow-dirty
for package in tidegate tidegate-cli; do
    echo "-- $package holds"
    cargo package -p "$package" --list --allow-dirty
done
