#!/usr/bin/env bash
# Debian packages that chores of the Makefile use:
#     make/system.sh need NAME...    install those of NAME that are missing; fail if one is missing still
#     make/system.sh want NAME...    the same, but say what is left out without it
#     make/system.sh plan NAME...    say what is missing, and what becomes of it; install nothing
#     make/system.sh has NAME...     succeed if nothing is missing; say nothing
#     make/system.sh mirror          print the mirror of Debian that this machine's apt is configured for, or MIRROR
# It installs as root, where there is apt-get, and nothing with SYSTEM=no. With SAID=yes `want` prints nothing: a plan was printed before.
set -eu -o pipefail
shopt -s inherit_errexit

# NAME | command or file | packages | what is left out without it
table() {
    local python=${BASE_PYTHON:-python3} headers
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null || true)
    cat <<TABLE
python|$python|python3 python3-venv|everything
compiler|cc|gcc libc6-dev|the compiled twin
headers|$headers/Python.h|python3-dev|the compiled twin
cxx|g++|g++|tests of clients in C++
build-essential|/usr/share/build-essential/essential-packages-list|build-essential|the Debian package
debhelper|dh_installsysusers|debhelper dpkg-dev fakeroot python3-venv python3-dev|the Debian package
rpm|rpmbuild|rpm|the RPM
debootstrap|debootstrap|debootstrap|clean roots of Debian
nspawn|systemd-nspawn|systemd-container|clean machines with systemd
clang|clang|clang libclang-rt-dev|fuzzing by coverage
valgrind|valgrind|valgrind|the count of instructions per message
spin|spin|spin|the proof of the order of memory among workers
pkg-config|pkg-config|pkg-config|tests of Proton's logins: it is compiled without Cyrus SASL and TLS
sasl-headers|/usr/include/sasl/sasl.h|libsasl2-dev|tests of Proton's logins: it is compiled without Cyrus SASL
openssl-headers|/usr/include/openssl/ssl.h|libssl-dev|tests of Proton's logins by certificate: it is compiled without TLS
npm|npm|nodejs npm|the web console and its tests, and tests of clients in JavaScript
chromium|chromium|chromium|tests of the web console in a browser
curl|curl|curl|tests of HTTP by curl
ip|ip|iproute2|tests in network namespaces
sasl|saslpasswd2|sasl2-bin libsasl2-modules libsasl2-modules-db db-util|tests of logins by Cyrus SASL
kerberos|kadmin.local|krb5-kdc krb5-admin-server krb5-user libsasl2-modules-gssapi-mit|tests of Kerberos
openssl|openssl|openssl|tests of TLS by OpenSSL's commands
java|java|openjdk-17-jre-headless|tests with Spark
rabbitmq|rabbitmqctl|rabbitmq-server|tests with RabbitMQ 3.10
unshare|unshare|util-linux|tests with RabbitMQ 4
mmdebstrap|mmdebstrap|mmdebstrap|tests with RabbitMQ 4
prometheus|promtool|prometheus|tests of alerts
haproxy|haproxy|haproxy|tests and measurements with HAProxy
proton-c|/usr/include/proton/proactor.h|libqpid-proton11-dev|tests of Proton's clients in C
proton-cxx|/usr/include/proton/container.hpp|libqpid-proton-cpp12-dev|tests of Proton's clients in C++
proton-examples|/usr/share/proton/examples/c/send.c|libqpid-proton11-dev-examples|tests of Proton's examples
proton-python|/usr/lib/python3/dist-packages/proton/__init__.py|python3-qpid-proton|tests of Debian's Proton for Python
TABLE
}

say() { echo "make: $*" >&2; }

may_install() { [ "${SYSTEM:-yes}" != no ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# The rows of the names, in their order, whose command or file is missing.
missing() {
    local rows row name
    rows=$(table)
    for name; do
        row=$(grep -m 1 "^$name|" <<<"$rows" || true)
        [ -n "$row" ] || { say "system.sh: no row $name"; exit 2; }
        IFS='|' read -r _ there _ <<<"$row"
        command -v "$there" >/dev/null 2>&1 || [ -e "$there" ] || echo "$row"
    done
}

packages_of() { cut -d '|' -f 3 | tr ' ' '\n' | awk '!seen[$0]++' | tr '\n' ' ' | sed 's/ $//'; }

# Install packages without starting their services, now or at boot: tests run their own. Debian consults the policy before it starts a
# service; a machine that has a policy keeps it.
install_packages() {
    local policy=/usr/sbin/policy-rc.d
    apt-get -qq update || return
    if [ ! -e $policy ]; then
        trap "rm -f $policy" EXIT
        trap 'exit 1' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" || return
    for each; do systemctl --quiet disable "$each" 2>&1 || true; done
}

# Each row that is missing still, after the packages of all were installed where that is allowed.
missing_after_install() {
    local rows packages
    rows=$(missing "$@")
    if [ -n "$rows" ] && may_install; then
        packages=$(packages_of <<<"$rows")
        if [ "${SAID:-}" != yes ]; then say "installing $packages (SYSTEM=no installs nothing)"; fi
        # One package that apt does not have must not keep the others out.
        # shellcheck disable=SC2086 # the packages are words
        (install_packages $packages) >/dev/null 2>&1 || while IFS='|' read -r _ _ packages _; do
            (install_packages $packages) >/dev/null </dev/null || say "could not install $packages"
        done <<<"$rows"
        rows=$(missing "$@")
    fi
    if [ -n "$rows" ]; then echo "$rows"; fi
}

left_out() {
    local packages without
    while IFS='|' read -r _ _ packages without; do say "left out: $without (Debian: $packages)"; done
}

verb=${1:-}
shift || true
case $verb in
    need)
        rows=$(missing_after_install "$@")
        [ -z "$rows" ] || { say "this takes $(packages_of <<<"$rows"); please install that (Debian: apt-get install) and try again"; exit 1; }
        ;;
    want)
        rows=$(missing_after_install "$@")
        if [ -n "$rows" ] && [ "${SAID:-}" != yes ]; then left_out <<<"$rows"; fi
        ;;
    plan)
        rows=$(missing "$@")
        if [ -z "$rows" ]; then
            say "this system has every Debian package that is used"
        elif may_install; then
            say "to be installed by apt-get, which SYSTEM=no prevents: $(packages_of <<<"$rows")"
        else
            left_out <<<"$rows"
        fi
        ;;
    has)
        rows=$(missing "$@")
        [ -z "$rows" ]
        ;;
    mirror)
        mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | sed -n 1p)}
        [ -n "$mirror" ] || { say "apt knows no mirror of Debian here; run apt-get update, or set MIRROR"; exit 1; }
        echo "$mirror"
        ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
