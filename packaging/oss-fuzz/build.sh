#!/bin/bash -eu
exec "$SRC/trouter/fuzz/build.sh" "$@"
