#!/usr/bin/env bash
# What README.md shows under "Over HTTP" is what its commands print, run one after the other; with --write, README.md is made to
# show that. TIDEGATE is the command that is run (built where it is not given).
#
# Two things are not as a reader has them: the server listens at a free port, which is 8181 in what is compared, and
# carriage returns, which end the lines of a head, are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -z ${TIDEGATE:-} ]]; then
    cargo build --quiet --profile test -p tidegate-cli
    TIDEGATE=${CARGO_TARGET_DIR:-target}/debug/tidegate
fi
export no_proxy='*' NO_PROXY='*'
readonly heading='## Over HTTP'

box=$(mktemp -d)
server=
stop() {
    if [[ -n $server ]]; then
        kill "$server" || true
        wait "$server" || true
        server=
    fi
}
trap 'stop; rm -rf "$box"' EXIT

# The first console block under the heading, between its two fences.
awk -v heading="$heading" '
    /^## / { here = $0 == heading }
    /^```/ && inside { exit }
    inside
    here && /^```console$/ { inside = 1 }
' README.md >"$box/shown"
grep -q '^\$ ' "$box/shown" || {
    echo "README.md: no console block under \"$heading\"" >&2
    exit 1
}

# In the background, and there in the place of the shell that `&` makes.
tidegate() { exec "$TIDEGATE" "$@" --listen 127.0.0.1:0; }

# Runs what stands behind each `$ `, the first of which starts the server.
play() {
    local command port
    : >"$box/printed"
    : >"$box/address"
    while IFS= read -r command; do
        printf '$ %s\n' "$command" >>"$box/printed"
        if [[ -z $server ]]; then
            eval "$command" >"$box/address" </dev/null
            server=$!
            for ((tries = 0; tries < 200; tries++)); do
                [[ -s $box/address ]] && break
                sleep 0.1
            done
            port=$(sed -n 's/^http:\/\/127\.0\.0\.1://p' "$box/address")
            [[ -n $port ]] || {
                echo "the first command has not begun a server: $command" >&2
                exit 1
            }
            echo http://127.0.0.1:8181 >>"$box/printed"
        else
            # What fails is shown as it is.
            { eval "${command//8181/$port}" </dev/null 2>&1 || true; } | tr -d '\r' | sed "s/127\.0\.0\.1:$port/127.0.0.1:8181/g" >>"$box/printed"
        fi
    done < <(sed -n 's/^\$ //p' "$box/shown")
    stop
}

if [[ ${1:-} == --write ]]; then
    play
    awk -v heading="$heading" -v printed="$box/printed" '
        /^## / { here = $0 == heading }
        /^```/ && inside { inside = 0; here = 0 }
        !inside
        here && /^```console$/ { inside = 1; while ((getline line < printed) > 0) print line }
    ' README.md >"$box/README.md"
    cat "$box/README.md" >README.md
    exit 0
fi

# Seconds are rounded up, so all that the commands take must be less than one of them: a busy machine may try again.
for try in 1 2 3; do
    play
    if diff -u --label README.md --label printed "$box/shown" "$box/printed" >"$box/difference"; then
        echo "README.md shows what is printed over HTTP"
        exit 0
    fi
    echo "try $try: not as README.md shows it" >&2
done
cat "$box/difference"
echo "ci/transcript.sh --write puts what is printed into README.md" >&2
exit 1
