# shellcheck shell=bash
# Shared functions for tests under a real systemd: a container that boots a temporary copy of this system without a network, a data
# service, and a receiver that records its messages. Scripts set `subject` and `set -Eeuo pipefail`, and source this file from the
# repository root.

work=$(mktemp -d)
nspawn=

not_run() {
    echo "NOT RUN: $subject: $*"
    exit 0
}
fail() {
    echo "FAILED: $*"
    [ -z "${init:-}" ] || inside journalctl --no-pager -q -n 60 -u cliffwatch || true
    exit 1
}
passed() { printf '  %-74s %s\n' "$1" "${2:-}"; }

# shellcheck disable=SC2317,SC2329 # called by the trap
clean_up() {
    if [ -n "$nspawn" ]; then
        [ -z "${init:-}" ] || kill -RTMIN+4 "$init" 2>/dev/null || true # makes systemd power off
        for _ in $(seq 100); do kill -0 "$nspawn" 2>/dev/null || break; sleep 0.1; done
        kill -TERM "$nspawn" 2>/dev/null && sleep 1
        kill -KILL "$nspawn" 2>/dev/null || true
        wait "$nspawn" 2>/dev/null || true
    fi
    mountpoint -q "$work/root" && umount "$work/root"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND"' ERR

# ---------------------------------------------------------------------------------------------------------------- the machine

boot() { # systemd-nspawn options…
    [ "$(id -u)" = 0 ] || not_run "it needs root"
    command -v systemd-nspawn >/dev/null || not_run "systemd-nspawn is not installed (Debian: apt-get install systemd-container)"
    command -v python3 >/dev/null || not_run "python3 is not installed"
    [ -x /lib/systemd/systemd ] || not_run "this machine's system has no systemd to boot (Debian: apt-get install systemd)"
    mkdir "$work/root"
    mount --bind / "$work/root" 2>"$work/why" || not_run "$(cat "$work/why")"
    systemd-nspawn --directory="$work/root" --volatile=overlay --boot --register=no --keep-unit --console=pipe --link-journal=no \
        --machine="cliffwatch-test-$$" --uuid="$(cat /proc/sys/kernel/random/uuid)" --private-network \
        --bind-ro="$PWD/data:/opt/cliffwatch/data" --bind-ro="$PWD/tests/systemd/receiver.py:/opt/cliffwatch/receiver.py" \
        "$@" -- --unit=basic.target --show-status=no </dev/null >"$work/boot.log" 2>&1 &
    nspawn=$!
    for _ in $(seq 300); do
        kill -0 "$nspawn" 2>/dev/null || not_run "cannot boot a container: $(grep -v '^Host and machine ids' "$work/boot.log" | tail -1)"
        init=$(pgrep -P "$nspawn" | head -1) || { sleep 0.1; continue; }
        case "$(inside systemctl is-system-running 2>/dev/null)" in running | degraded) break ;; esac
        sleep 0.1
    done
    case "$(inside systemctl is-system-running 2>/dev/null)" in
    running | degraded) ;;
    *) not_run "the container's systemd did not come up within 30 s: $(tail -1 "$work/boot.log")" ;;
    esac
}

inside() { nsenter --target "$init" --all -- "$@"; }
play() { # runbook, section: runs the commands of the section as root
    local line
    awk -v heading="## $2" '$0 == heading { on = 1; next } /^## / { on = 0 } on && sub(/^\$ (sudo )?/, "")' "docs/runbooks/$1.md" >"$work/commands"
    [ -s "$work/commands" ] || fail "docs/runbooks/$1.md has no commands in \"$2\""
    while read -r line <&3; do
        inside sh -c "cd /root && $line" >"$work/out" 2>&1 || fail "docs/runbooks/$1.md: $line: $(cat "$work/out")"
    done 3<"$work/commands"
}
block() { # page, heading, language, number: prints a code block of the language in the section, by default the first one
    awk -v heading="$2" -v fence="\`\`\`$3" -v left="${4:-1}" '!code && /^#+ / { on = $0 == heading }
        on && $0 == fence && --left == 0 { code = 1; next } code && /^```/ { exit } code' "$1"
}
version_of_systemd() { inside systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p'; }
put() { inside sh -c 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"' - "$1" "${2:-644}"; } # from standard input
show() { inside systemctl show cliffwatch --property="$1" --value; }
until_true() { # seconds, command…
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $deadline ] || return 1
        sleep 0.2
    done
}
http() { # path: the status, then the body
    inside python3 -c '
import sys, urllib.request, urllib.error
try:
    response = urllib.request.urlopen("http://127.0.0.1:9797" + sys.argv[1], timeout=10)
except urllib.error.HTTPError as error:
    response = error
print(getattr(response, "status", None) or response.code)
print(response.read().decode())' "$1"
}
ready() { [ "$(http /-/ready 2>/dev/null | sed -n 1p)" = 200 ]; }

# ------------------------------------------------------------------------------------------------------- the data service and the receiver

listens() { inside python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2)' "$1" 2>/dev/null; }
data_service() { # binary: serves the bundled schedules on port 9700 and prints an API key
    local key
    inside sh -c 'cd /opt && mkdir -p /srv/service && "$1" import /opt/cliffwatch/data --db /srv/service/service.db >/dev/null 2>&1' - "$1"
    key=$(inside "$1" keys add desk --monthly-limit 100000 --db /srv/service/service.db 2>/dev/null)
    inside systemd-run --quiet --unit=source --property=WorkingDirectory=/srv/service "$1" serve --db /srv/service/service.db \
        --listen 127.0.0.1:9700 --legacy-listen 127.0.0.1:9701 --require-key --requests-per-minute 60000
    until_true 20 listens 9700 || fail "the data service does not listen: $(inside journalctl -q --no-pager -u source)"
    echo "$key"
}
receiver() { # starts the webhook receiver on port 9800, which records messages in /var/book
    inside sh -c ': >>/var/book'
    inside systemd-run --quiet --collect --unit=receiver /usr/bin/python3 /opt/cliffwatch/receiver.py /var/book
    until_true 20 listens 9800 || fail "the receiver does not listen: $(inside journalctl -q --no-pager -u receiver)"
}
count() { inside sh -c 'grep -c " $1" /var/book || true' - "$1"; } # number of messages of a type
has_received() { [ "$(count alert.)" = "$1" ]; }
settled() { # messages arrived, but none within the last three seconds; too few for a welcome message
    local before
    before=$(count alert.)
    sleep 3
    [ "$before" -gt 0 ] && [ "$(count alert.)" = "$before" ]
}
