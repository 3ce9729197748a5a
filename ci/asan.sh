#!/usr/bin/env bash
# The tests that churn and race, built with AddressSanitizer. Needs a nightly toolchain, for the flag; the standard
# library is not instrumented.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nightly=$(rustup toolchain list 2>/dev/null | awk '/^nightly/ && !found { print $1; found = 1 }')
[[ -n $nightly ]] || {
    echo "the sanitizer needs a nightly toolchain and rustup lists none: rustup toolchain install nightly" >&2
    exit 1
}
host=$(rustc "+$nightly" -vV | awk '/^host:/ { print $2 }')

# Bounds on real clocks hold under the sanitizer too; only what counts system calls or allocations is left out.
# Leaks are not looked for: the process's clock is meant to stay.
export RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
cargo "+$nightly" test -p tidegate --target "$host" --lib \
    --test stress --test races --test removal_races --test slot_races --test interrupted --test slot_table --test limiters_agree --test policy --test promises --test snapshots
