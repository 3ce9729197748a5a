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
# test of the command ask through nginx, with curl; another test has a Prometheus scrape the command's server.
packages=()
command -v c++ >/dev/null || command -v g++ >/dev/null || packages+=(g++)
command -v valgrind >/dev/null || packages+=(valgrind)
# Debian keeps it where only root looks by itself.
PATH=$PATH:/usr/sbin command -v nginx >/dev/null || packages+=(nginx)
command -v curl >/dev/null || packages+=(curl)
{ command -v prometheus && command -v promtool; } >/dev/null || packages+=(prometheus)
if [[ ${#packages[@]} -gt 0 ]]; then
    if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
        # Some of them are services. None is to begin by itself, on a port that somebody may want.
        policy=/usr/sbin/policy-rc.d
        if [[ ! -e $policy ]]; then
            trap 'rm -f "$policy"' EXIT
            printf '#!/bin/sh\nexit 101\n' >"$policy"
            chmod 755 "$policy"
        fi
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        for package in "${packages[@]}"; do
            # What Prometheus recommends is a second service, and tools for disks.
            lean=()
            [[ $package == prometheus ]] && lean=(--no-install-recommends)
            apt-get install -y -qq "${lean[@]}" "$package"
        done
    else
        echo "missing here: ${packages[*]} (on Debian: apt-get install ${packages[*]})" >&2
        exit 1
    fi
fi

rustc --version
cargo --version
