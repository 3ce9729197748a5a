#!/usr/bin/env bash
# Installs what the other scripts need and a machine with rustup may lack. Does nothing where all is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v cargo >/dev/null || {
    echo "no cargo here: install Rust 1.88 or newer with rustup first" >&2
    exit 1
}

for component in rustfmt clippy; do
    # `cargo fmt` and `cargo clippy` are rustup's stand-ins: they exist even where the component does not.
    if [[ $component == rustfmt ]]; then probe=(cargo fmt --version); else probe=(cargo clippy --version); fi
    "${probe[@]}" >/dev/null 2>&1 || rustup component add "$component"
done

# Of the system's packages: libFuzzer, which fuzz.sh links, is C++; instructions.sh counts under valgrind; http.sh and a
# test of the command ask through nginx, with curl.
packages=()
command -v c++ >/dev/null || command -v g++ >/dev/null || packages+=(g++)
command -v valgrind >/dev/null || packages+=(valgrind)
# Debian keeps it where only root looks by itself.
PATH=$PATH:/usr/sbin command -v nginx >/dev/null || packages+=(nginx)
command -v curl >/dev/null || packages+=(curl)
if [[ ${#packages[@]} -gt 0 ]]; then
    if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}"
    else
        echo "missing here: ${packages[*]} (on Debian: apt-get install ${packages[*]})" >&2
        exit 1
    fi
fi

rustc --version
cargo --version
