#!/usr/bin/env bash
# `tidegate serve` as README.md shows it, and examples/nginx with a real nginx.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --quiet --profile test -p tidegate-cli
target=${CARGO_TARGET_DIR:-target}
TIDEGATE=$(realpath "$target/debug/tidegate")
export TIDEGATE no_proxy='*' NO_PROXY='*'

bash ci/transcript.sh

echo "-- examples/nginx"
# Three of five pass, over HTTP/1.1 and HTTP/2 together, and what the application forbids is one of them. One
# request to a connection: curl 7.88 fails at its second over HTTP/2 in the clear, whoever the server is.
printed=$(PREFIX=2 bash examples/nginx/run.sh bash -c '
    ask() { curl -s -o /dev/null -w "HTTP/%{http_version} %{http_code}\n" "$@"; }
    ask 127.0.0.1:28080/forbidden
    for at in 1 2 3; do ask --http2-prior-knowledge "127.0.0.1:28081/?$at"; done
    ask 127.0.0.1:28080/
')
diff <(printf 'HTTP/%s\n' '1.1 403' '2 200' '2 200' '2 429' '1.1 429') <(echo "$printed") || {
    echo "examples/nginx does not answer as it should (left: expected)" >&2
    exit 1
}
echo "it answers as it should"
