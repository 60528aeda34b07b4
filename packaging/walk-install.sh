#!/bin/bash
# Type the commands of docs/install.md that install and start the router, on clean machines that systemd has booted:
#     make walk-install
# It needs root, debootstrap, systemd-nspawn, rpmbuild, the wheels in dist/, and for the chapters on Debian and on Fedora the package in
# dist/SUITE/ and the RPM in dist/ (`make packages`). SUITE is that of this machine's Python, by default bookworm. The machines have no
# network: pip finds the wheels in a folder. CHAPTERS names the chapters to type, by default "pip debian fedora". In place of Fedora there is
# a Debian with its dnf, on which one package without files stands for those that Fedora has: Python, systemd, a shell and procps.
set -eu -o pipefail
checkout=$(cd "$(dirname "$0")/.." && pwd)
suite=${SUITE:-bookworm}
roots=${ROOTS:-$checkout/build/roots}
chapters=${CHAPTERS:-pip debian fedora}
mkdir -p "$roots"
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
# fresh NAME [PACKAGES]: make the disk of a clean machine with these packages more than the least.
fresh() {
    local base=$roots/$suite-$1
    if [ ! -e "$base/etc/debian_version" ]; then
        debootstrap --variant=minbase --include="python3,python3-venv,systemd,procps${2:+,$2}" "$suite" "$base" \
            "$("$checkout/make/system.sh" mirror)" >"$base.log"
    fi
    cp -a "$base" "$work/root"
    rm -f "$work/root/etc/machine-id"
    cp "$checkout"/packaging/smoke.py "$work/root/srv/"
}
# boot: start it; `inside COMMAND...` then runs a command in it.
boot() {
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

from_pip() {
    fresh booted
    boot
    mkdir "$work/root/srv/wheels"
    "${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --only-binary :all: \
        --find-links "$checkout/dist" --dest "$work/root/srv/wheels" trouter
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
}
from_debian() {
    fresh booted
    boot
    cp "$1" "$work/root/srv/"
    walk "On Debian" 1
    smoke /usr/lib/trouter/bin/python 5672
    inside systemctl is-active trouter
    stop
}
from_fedora() {
    fresh dnf dnf
    cat >"$work/fedora.spec" <<END
Name: fedora
Version: 1
Release: 1
Summary: What Fedora has and this machine has from Debian
License: Apache-2.0
BuildArch: noarch
Provides: /bin/sh, /usr/bin/kill, systemd
Provides: python(abi) = $(chroot "$work/root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
%description
It has no files.
%files
END
    rpmbuild -bb --quiet --define "_topdir $work/rpm" "$work/fedora.spec"
    rpm --root "$work/root" --force-debian --nodeps --install "$work"/rpm/RPMS/noarch/fedora-*.rpm
    echo assumeyes=True >>"$work/root/etc/dnf/dnf.conf" # where a reader says y
    cp "$1" "$work/root/srv/"
    boot
    walk "On Fedora and RHEL" 1
    inside dnf --quiet list installed | grep '^trouter'
    smoke /usr/lib/trouter/bin/python 5672
    inside systemctl is-active trouter
    inside dnf remove trouter
    if inside test -e /usr/bin/trouter; then exit 1; fi
    stop
}

for chapter in $chapters; do
    case $chapter in
        pip) from_pip; continue ;;
        debian) package=$(ls "$checkout"/dist/"$suite"/trouter_*.deb 2>/dev/null || true) ;;
        fedora) package=$(ls "$checkout"/dist/trouter-*.rpm 2>/dev/null || true) ;;
        *) echo "walk-install: there is no chapter $chapter" >&2; exit 2 ;;
    esac
    if [ -n "$package" ]; then "from_$chapter" "$package"; else echo "walk-install: dist/ has no package: $chapter is not walked" >&2; fi
done
echo "The page's commands install a router ($chapters), and systemd runs it."
