#!/bin/sh
# Run the router of this checkout: interpreted until `make build` has compiled it, then compiled. If npm is installed, the console is
# built while the router runs, which then serves it.
if [ -e .venv/built ]; then make --no-print-directory build || exit; else
    echo "make: the router runs interpreted, at about a tenth of its speed; 'make build' compiles it, once" >&2
fi
setsid make --no-print-directory console-beside &
beside=$!
trap 'kill -- -$beside 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
.venv/bin/trouter run "$@"
