#!/usr/bin/env bash
# What crates.io would get: the library builds from its own package alone, and the command's package is whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The command's package is built against the library's, which cargo unpacks under a name made from this folder's path,
# and takes an unpacked or built one of that name to be current. So each run has a folder, and a name, of its own.
box=$(mktemp -d)
trap 'rm -rf "$box" "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/tidegate-[0-9]*' EXIT

cargo package -p tidegate -p tidegate-cli --allow-dirty --target-dir "$box"
for package in tidegate tidegate-cli; do
    echo "-- $package holds"
    cargo package -p "$package" --list --allow-dirty
done
