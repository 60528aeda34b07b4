#!/usr/bin/env bash
# Run a command on a copy of this machine with more Debian packages and without a network; this machine stays as it is:
#     packaging/other-machine.sh 'slapd nslcd libpam-ldapd' sh -c 'packaging/slapd.sh && python3 packaging/walk.py docs/ldap.md'
# What the command writes goes into memory and ends with it, and so do its processes. It needs root, overlayfs and Debian.
set -eu -o pipefail
[ $# -gt 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
packages=$1; shift
checkout=$(cd "$(dirname "$0")/.." && pwd)
export packages checkout DEBIAN_FRONTEND=noninteractive
exec unshare --mount --pid --fork --kill-child bash -eu -o pipefail -c '
    over=$(mktemp -d) && mount -t tmpfs none "$over" && mkdir "$over"/upper "$over"/work "$over"/root
    mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$over/root"
    mount -t proc proc "$over/root/proc" && mount --rbind /dev "$over/root/dev" && mount -t tmpfs none "$over/root/run"
    printf "#!/bin/sh\nexit 101\n" > "$over/root/usr/sbin/policy-rc.d" && chmod +x "$over/root/usr/sbin/policy-rc.d"
    for each in update "install --yes --no-install-recommends $packages"; do
        chroot "$over/root" apt-get --quiet --quiet $each >"$over/said" 2>&1 || { cat "$over/said" >&2; exit 3; }
    done
    rm "$over/root/usr/sbin/policy-rc.d"
    exec unshare --net chroot "$over/root" sh -c "cd \"\$checkout\" && exec \"\$@\"" sh "$@"
    ' bash "$@"
