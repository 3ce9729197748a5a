#!/usr/bin/env bash
# Starts `tidegate serve` and nginx as this folder says, and stops both at the end:
#
#     run.sh                                # until Ctrl-C
#     run.sh curl -si 127.0.0.1:8080        # until the command has ended, with its status
#
# TIDEGATE is the command (tidegate); PREFIX=1 puts a 1 before each port, as 18080, where the ports are taken.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export no_proxy='*' NO_PROXY='*'
tidegate=${TIDEGATE:-tidegate}
port=127.0.0.1:${PREFIX:-}8
# Debian keeps nginx where only root looks by itself.
PATH=$PATH:/usr/sbin

for command in "$tidegate" nginx curl; do
    command -v "$command" >/dev/null || {
        echo "no $command here (nginx and curl: apt-get install; tidegate: cargo install --locked --path cli, or TIDEGATE=FILE)" >&2
        exit 1
    }
done

for address in "$port"{080,081,082,181}; do
    status=0
    curl -s -o /dev/null "$address" || status=$?
    # 7: nobody listens there.
    if [[ $status -ne 7 ]]; then
        echo "$address is taken; PREFIX=1 puts a 1 before each port" >&2
        exit 1
    fi
done

box=$(mktemp -d)
pids=()
stop() {
    kill "${pids[@]}" 2>/dev/null || true
    wait || true
    rm -rf "$box"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Where root starts nginx, its workers are somebody else, who must get at the folders in it.
chmod 711 "$box"
sed "s/127\.0\.0\.1:8/$port/" "$here/nginx.conf" >"$box/nginx.conf"
"$tidegate" serve --policy "$here/limits.toml" --listen "${port}181" --original x-original-uri >"$box/tidegate.log" 2>&1 &
pids+=($!)
nginx -e stderr -p "$box" -c nginx.conf -g 'daemon off;' &
pids+=($!)

for address in "${port}181/health" "${port}082/"; do
    until curl -s -o "$box/answer" "$address"; do
        for pid in "${pids[@]}"; do
            kill -0 "$pid" 2>/dev/null || { cat "$box/tidegate.log" >&2; exit 1; }
        done
        sleep 0.1
    done
done

if [[ $# -gt 0 ]]; then
    "$@"
else
    echo "http://${port}080 (HTTP/1.1), http://${port}081 (HTTP/2); Ctrl-C stops"
    wait -n
fi
