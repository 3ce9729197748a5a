#!/usr/bin/env bash
# Fuzzes each target for SECONDS (10 unless given); prints how many inputs it ran and how many of the target's
# edges (its own code and that of every crate it calls) they reached. For hours: ci/fuzz.sh 14400.
#   ci/fuzz.sh [SECONDS] [TARGET...]
# Needs a nightly toolchain, for the sanitizer and coverage flags; installs cargo-fuzz when it is missing.
# What a run discovers goes to fuzz/corpus (not committed); the committed seeds in fuzz/seeds are only read.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-10}
shift || true
[[ $seconds =~ ^[0-9]+$ && $seconds -gt 0 ]] || {
    echo "usage: ci/fuzz.sh [SECONDS] [TARGET...]; SECONDS is a whole number above 0, not '$seconds'" >&2
    exit 2
}

nightly=$(rustup toolchain list 2>/dev/null | awk '/^nightly/ && !found { print $1; found = 1 }')
[[ -n $nightly ]] || {
    echo "fuzzing needs a nightly toolchain and rustup lists none: rustup toolchain install nightly" >&2
    exit 1
}
echo "fuzzing with $(rustc "+$nightly" --version)"

command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked

# cargo-fuzz passes the target folder by flag, so that flag is the only way to move it.
target_dir="${CARGO_TARGET_DIR:-target}/fuzz"
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(cargo "+$nightly" fuzz list)
[[ ${#targets[@]} -gt 0 ]] || { echo "fuzz/Cargo.toml names no target" >&2; exit 1; }

cargo "+$nightly" fuzz build --target-dir "$target_dir"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0
for target in "${targets[@]}"; do
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
    if cargo "+$nightly" fuzz run --target-dir "$target_dir" "$target" \
        "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -print_final_stats=1 \
        >"$log" 2>&1 </dev/null; then
        runs=$(awk '/stat::number_of_executed_units:/ { print $2 }' "$log")
        [[ ${runs:-0} -gt 0 ]] || { cat "$log"; echo "fuzz $target: ran no input" >&2; exit 1; }
        edges=$(awk '/^INFO: Loaded .* inline 8-bit counters/ { gsub(/[^0-9]/, "", $5); print $5 }' "$log")
        reached=$(awk '{ for (i = 1; i < NF; i++) if ($i == "cov:") n = $(i + 1) } END { print n }' "$log")
        printf 'fuzz %-14s %10d runs in %d s, %d of %d edges\n' "$target" "$runs" "$seconds" "$reached" "$edges"
        passed=$((passed + 1))
    else
        # What went wrong, without the stack; then the input as its type prints it, and how to run it again.
        grep -a -A3 'panicked at' "$log" || grep -a 'ERROR: ' "$log" || true
        sed -n '/^Failing input/,/^Minimize/p' "$log"
        printf 'fuzz %-14s FAILED: the input is under fuzz/artifacts/%s\n' "$target" "$target"
        failed=$((failed + 1))
    fi
done
echo "fuzz targets: $passed passed, $failed failed"
[[ $failed -eq 0 ]]
