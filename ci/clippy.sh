#!/usr/bin/env bash
# Every lint of Cargo.toml, as an error. The flags stand here and not in the sources, so that a newer compiler's
# new warning never breaks the build of someone who only uses tidegate. `incompatible_msrv` is among the lints: it is
# what holds the code to `rust-version`, since one toolchain is all that CI can count on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo clippy --workspace --all-targets --all-features -- -D warnings

# The tests of the library turn its features on; most of its users do not.
cargo clippy -p tidegate --lib -- -D warnings

# What is compiled for loom alone no other build sees.
RUSTFLAGS="--cfg tidegate_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
    cargo clippy -p tidegate-loom-tests --all-targets -- -D warnings

# The fuzz crate is a workspace of its own, and builds on any toolchain as long as nobody links it.
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz" \
    cargo clippy --manifest-path fuzz/Cargo.toml --all-targets -- -D warnings
