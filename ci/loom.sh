#!/usr/bin/env bash
# The models: loom runs the real code under every interleaving up to a bound on preemptions, and prints how many
# it ran. LOOM_MAX_PREEMPTIONS (2 unless set) is that bound: 3 takes far longer and is for a change of an ordering.
# A target folder of its own, because --cfg rebuilds everything.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
export RUSTFLAGS="--cfg tidegate_loom"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
echo "loom: at most $LOOM_MAX_PREEMPTIONS preemptions"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# One model at a time: each is single-threaded to the machine, and their prints stay in order.
cargo test --release -p tidegate-loom-tests -- --nocapture --test-threads=1 "$@" 2>&1 | tee "$log"

# Without the cfg, or with a filter that fits nothing, cargo is content with no model at all.
models=$(awk '/^test result: ok/ { passed += $4 } END { print passed + 0 }' "$log")
[[ $models -gt 0 ]] || {
    echo "loom: no model ran" >&2
    exit 1
}
echo "loom: $models models passed"
