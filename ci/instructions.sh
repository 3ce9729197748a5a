#!/usr/bin/env bash
# Instructions per check, tidegate's ÷ the floor's, counted by valgrind's callgrind: a figure that a busy machine does
# not change. Fails where the ratio is more than 5 % above the one in benches/instructions.txt.
# Then, instructions of a policy's admitted check with events ÷ without, which may be 1.03 at most.
#   ci/instructions.sh [--update]
# With --update it writes that file instead. Both are counted in one binary, over the same keys, and only inside the
# loop that the comparison times, on the thread that runs it: what it takes to build and fill a limiter does not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stored=benches/instructions.txt
case "${1:-}" in
'' | --update) ;;
*)
    echo "usage: ci/instructions.sh [--update]" >&2
    exit 2
    ;;
esac

cargo build --release -p tidegate-peers
binary="${CARGO_TARGET_DIR:-target}/release/tidegate-peers"
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT

# counted COMMAND...: instructions per check.
counted() {
    valgrind --tool=callgrind --toggle-collect='*::timed_loop*' --callgrind-out-file="$box/counts" \
        "$@" >"$box/out" 2>"$box/log" || {
        cat "$box/log" >&2
        return 1
    }
    awk '/^checks:/ { checks = $2 } /^summary:/ { sum = $2 }
        END { if (!checks || sum < checks) exit 1; printf "%.2f\n", sum / checks }' "$box/out" "$box/counts" || {
        echo "callgrind did not find the loop" >&2
        return 1
    }
}

{
    echo "# Instructions per check, and tidegate's ÷ the floor's: written by ci/instructions.sh --update, which says how."
    echo "# $(rustc --version | cut -d' ' -f1,2), $(valgrind --version), $(uname -m); 400 000 checks each."
    echo "# On a clock that stands still: how often the shipped one reads the counter depends on the machine."
    printf '%-12s %-16s %8s %8s %7s\n' workload contestant ours floor ratio
    while read -r workload contestant; do
        ours=$(counted "$binary" --only "$workload" --count "$contestant")
        floor=$(counted "$binary" --only "$workload" --count floor)
        awk -v w="$workload" -v c="${contestant// /_}" -v o="$ours" -v f="$floor" \
            'BEGIN { printf "%-12s %-16s %8.1f %8.1f %7.3f\n", w, c, o, f, o / f }'
    done <<<$'uniform_1k tidegate still\nrefused_hot tidegate still\nhot tidegate leased'
} >"$box/counted"

if [[ "${1:-}" == --update ]]; then
    cp "$box/counted" "$stored"
    cat "$stored"
    exit
fi

events=$(cargo bench -p tidegate --bench events --no-run 2>&1 | tee "$box/build" | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
[[ -x $events ]] || {
    cat "$box/build" >&2
    exit 1
}
failed=0
printf '%-16s %8s %8s %7s\n' 'admitted by' events none ratio
for case in passes passes_windows passes_three; do
    with=$(counted "$events" "$case" with)
    without=$(counted "$events" "$case" without)
    awk -v c="$case" -v w="$with" -v o="$without" 'BEGIN {
        more = (w > o * 1.03)
        printf "%-16s %8.1f %8.1f %7.3f%s\n", c, w, o, w / o, more ? "  MORE" : ""
        exit more
    }' || failed=$((failed + 1))
done
echo "instructions with events: $((3 - failed)) passed, $failed failed"

# A line of the stored file and one of today's belong together by their first two words.
awk '/^#/ || $1 == "workload" { next }
    NR == FNR { was[$1, $2] = $5; next }
    !header++ { printf "%-12s %-16s %8s %8s %7s %7s\n", "workload", "contestant", "ours", "floor", "ratio", "stored" }
    {
        printf "%-12s %-16s %8.1f %8.1f %7.3f %7s", $1, $2, $3, $4, $5, was[$1, $2]
        if (!was[$1, $2]) { failed++; print "  not stored: --update" }
        else if ($5 > was[$1, $2] * 1.05) { failed++; print "  MORE" }
        else if ($5 < was[$1, $2] * 0.95) print "  less: --update keeps it so"
        else print ""
        passed++
    }
    END { printf "instructions: %d passed, %d failed\n", passed - failed, failed; exit !passed || failed > 0 }' \
    "$stored" "$box/counted"
[[ $failed -eq 0 ]]
