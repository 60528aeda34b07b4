#!/bin/bash
# Type the commands of docs/install.md that install and start the router, on clean machines that systemd has booted:
#     make walk-install
# It needs root, debootstrap, systemd-nspawn, the wheels in dist/, and for the chapter on Debian the package in dist/SUITE/ (`make packages`).
# SUITE is that of this machine's Python, by default bookworm. The machines have no network: pip finds the wheels in a folder.
set -eu -o pipefail
checkout=$(cd "$(dirname "$0")/.." && pwd)
suite=${SUITE:-bookworm}
roots=${ROOTS:-$checkout/build/roots}
base=$roots/$suite-booted
work=$(mktemp -d "$roots/walk.XXXXXX")
machine="" leader=""
stop() {
    if [ -n "$machine" ]; then
        kill -KILL ${leader:+"$leader"} 2>/dev/null || true
        wait "$machine" 2>/dev/null || true
        machine=""
    fi
    rm -rf --one-file-system "$work"/*
}
trap 'stop; rmdir "$work"' EXIT
if [ ! -e "$base/etc/debian_version" ]; then
    debootstrap --variant=minbase --include=python3,python3-venv,systemd,procps "$suite" "$base" "${MIRROR:-http://deb.debian.org/debian}" >"$base.log"
fi
# boot: start a clean machine; `inside COMMAND...` then runs a command in it.
boot() {
    cp -a "$base" "$work/root"
    rm -f "$work/root/etc/machine-id"
    systemd-nspawn --quiet --register=no --keep-unit --private-network --kill-signal=SIGKILL --directory "$work/root" \
        /lib/systemd/systemd >"$work/boot.log" 2>&1 &
    machine=$!
    until leader=$(cat "/proc/$machine/task/$machine/children" 2>/dev/null) && leader=${leader%% *} && [ -n "$leader" ] &&
        inside systemctl --quiet is-active multi-user.target 2>/dev/null; do
        kill -0 "$machine" || { cat "$work/boot.log" >&2; exit 1; }
        sleep 0.2
    done
}
inside() {
    nsenter --target "$leader" --all env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        PIP_NO_INDEX=1 PIP_FIND_LINKS=/srv/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 "$@"
}
# block CHAPTER NUMBER: print a block of commands of the page.
block() {
    awk -v chapter="$1" -v wanted="$2" '
        /^##/ { here = ($0 ~ "^#+ " chapter "$") }
        /^```/ { if (here) { if (!open) { number++ } open = !open } next }
        here && open && number == wanted { print }' "$checkout/docs/install.md"
}
# walk CHAPTER NUMBER: type a block, as it is printed.
walk() {
    local text
    text=$(block "$1" "$2")
    [ -n "$text" ] || { echo "walk-install: docs/install.md has no block $2 under $1" >&2; exit 1; }
    inside bash -euxc "cd /srv"$'\n'"$text" </dev/null
}
smoke() { inside "$1" /srv/smoke.py "$2"; }

boot
mkdir "$work/root/srv/wheels"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --only-binary :all: \
    --find-links "$checkout/dist" --dest "$work/root/srv/wheels" trouter
cp "$checkout"/packaging/smoke.py "$work/root/srv/"
walk "With pip" 1
inside /opt/trouter/bin/trouter --version | grep -w compiled
walk "As a service" 1
inside systemctl is-active trouter
inside sh -c 'umask 077; echo a-password >/srv/password; /opt/trouter/bin/trouter passwd add /etc/trouter/users ann --password-file /srv/password'
# The page leaves the configurations of the instances to its reader.
for each in east:5673 west:5674; do
    inside tee "/etc/trouter/${each%:*}.conf" >/dev/null <<END
router { id: ${each%:*} }
listener { host: 127.0.0.1, port: ${each#*:}, saslMechanisms: ANONYMOUS, authenticatePeer: no }
END
done
walk "As a service" 2
for port in 5673 5674; do smoke /opt/trouter/bin/python "$port"; done
inside systemctl is-active trouter trouter@east trouter@west
stop

package=$(ls "$checkout"/dist/"$suite"/trouter_*.deb 2>/dev/null) || { echo "walk-install: no package in dist/$suite: \"On Debian\" is not walked" >&2; exit 0; }
boot
cp "$package" "$work/root/srv/"
cp "$checkout"/packaging/smoke.py "$work/root/srv/"
walk "On Debian" 1
smoke /usr/lib/trouter/bin/python 5672
inside systemctl is-active trouter
stop
echo "The pages' commands install a router by pip and from Debian's package, and systemd runs it."
