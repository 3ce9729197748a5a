#!/usr/bin/env bash
# Changes the code in one small place at a time (cargo-mutants) and runs seconds of tests, one of which must notice: in
# all of src/word and src/time and in a sample of src/table, or only in the files that match a glob.
#   ci/mutants.sh ['src/word/*.rs']
# What no test can notice stands in tests/MUTANTS.md with the reason. Any other survivor is a failure, and so is a row
# there, of a file that was tried, whose mutant was caught.
# Works on a copy of the tracked files; the tree stays as it is. Installs cargo-mutants when it is missing. No step of
# .ci/run: a mutant takes some 5 s of processor time, the whole more than an hour on one core.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sample=('src/word/**/*.rs' 'src/time/**/*.rs' src/table/places.rs src/table/slots/line.rs)
[[ $# -eq 0 ]] || sample=("$@")
# Beside the unit tests: the integration tests that take no more than a few seconds unoptimised.
tests=(coarse_refusals config_errors live pay promises removal reserve settings tiers slot_table sliding snapshots vectors)

command -v cargo-mutants >/dev/null || cargo install cargo-mutants --locked

box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
mkdir "$box/tree"
git ls-files -z | xargs -0 cp --parents -t "$box/tree"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/mutants"
# Each build is run once: only what it depends on is optimised. Debug assertions and overflow checks stay on.
export CARGO_INCREMENTAL=1 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_TEST_OPT_LEVEL=0
optimised='--config=profile.test.package."*".opt-level=2'
# The same histories each time: a verdict is no matter of luck, and what one mutant fails on is not kept for the next.
export PROPTEST_RNG_SEED=1 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 PROPTEST_MAX_SHRINK_ITERS=0

select=(--package tidegate --exclude '**/tests.rs' --exclude '**/tests/*.rs' --exclude-re 'tests::')
for glob in "${sample[@]}"; do select+=(--file "$glob"); done

# mutants ARGUMENT...: tries those that are left against the tests that the arguments select. What stands behind a `--`
# would reach the run of the tests alone: all others would be built for each mutant.
mutants() {
    local rc=0
    cargo mutants --dir "$box/tree" --in-place --output "$box" "${select[@]}" --iterate --cargo-arg "$optimised" \
        "${@/#/--cargo-arg=}" --minimum-test-timeout 10 --colors never </dev/null || rc=$?
    # 2: some were missed, 3: some ran into the timeout. Anything else is no verdict.
    [[ $rc -eq 0 || $rc -eq 2 || $rc -eq 3 ]] || exit "$rc"
}

# Most fail a unit test, which is quickly built; only the others meet the integration tests.
out=$box/mutants.out
mutants --lib
caught=$(wc -l <"$out/caught.txt")
unviable=$(wc -l <"$out/unviable.txt")
hung=$(wc -l <"$out/timeout.txt")
if [[ -s $out/missed.txt ]]; then
    cat "$out/timeout.txt" >>"$out/caught.txt" # to hang is to be noticed: not tried again
    mutants --lib "${tests[@]/#/--test=}"
    caught=$((caught + $(wc -l <"$out/caught.txt")))
    hung=$((hung + $(wc -l <"$out/timeout.txt")))
fi

# The table names a mutant without its line, which moves.
cargo mutants --dir "$box/tree" --list "${select[@]}" | cut -d: -f1 | sort -u >"$box/tried"
sed -E 's/:[0-9]+:[0-9]+: /: /' "$out/missed.txt" | sort >"$box/missed"
sed -nE '/^\| `/{s/^\| `([^`]*)` .*/\1/; s/\\\|/|/g; p}' tests/MUTANTS.md | sort | { grep -Ff "$box/tried" || true; } >"$box/known"
survivors=$(comm -23 "$box/missed" "$box/known")
outdated=$(comm -13 "$box/missed" "$box/known")
[[ -z $survivors ]] || printf 'SURVIVED      %s\n' "${survivors//$'\n'/$'\nSURVIVED      '}"
[[ -z $outdated ]] || printf 'NO SURVIVOR   %s\n' "${outdated//$'\n'/$'\nNO SURVIVOR   '}"
printf 'mutants: %d caught, %d ran into the timeout, %d in tests/MUTANTS.md, %d more survived; %d did not build\n' \
    "$caught" "$hung" "$(comm -12 "$box/missed" "$box/known" | wc -l)" "$(comm -23 "$box/missed" "$box/known" | wc -l)" "$unviable"
[[ -z $survivors && -z $outdated ]]
