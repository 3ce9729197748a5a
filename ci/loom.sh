#!/usr/bin/env bash
# The models: loom runs the real code under every interleaving up to a bound on preemptions, and prints how many
# it ran. LOOM_MAX_PREEMPTIONS (2 unless set) is that bound: 3 takes far longer and is for a change of an ordering.
# A target folder of its own, because --cfg rebuilds everything. Arguments go to the test runner.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
echo "loom: at most $LOOM_MAX_PREEMPTIONS preemptions"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# models CFGS TESTS... -- RUNNER-ARGUMENTS...
# One model at a time: each is single-threaded to the machine, and their prints stay in order.
models() {
    local cfgs=$1
    shift
    RUSTFLAGS="$cfgs" cargo test --release -p tidegate-loom-tests "$@" --nocapture --test-threads=1 2>&1 | tee -a "$log"
}

models "--cfg tidegate_loom" -- "$@"
# Once more with room for one mark: what the slot table does when more threads claim for one key than it looks at
# together, which takes more threads than the models have.
models "--cfg tidegate_loom --cfg tidegate_loom_one_mark" --test slots_one_key --test slots_takeover -- "$@"

# Without the cfg, or with a filter that fits nothing, cargo is content with no model at all.
passed=$(awk '/^test result: ok/ { passed += $4 } END { print passed + 0 }' "$log")
[[ $passed -gt 0 ]] || {
    echo "loom: no model ran" >&2
    exit 1
}
echo "loom: $passed models passed"
