# shellcheck shell=bash
# setup.sh - makes .venv fit the checkout: Python, packages, native modules. Sourced by ./hotloop and ./check.
#
# The caller sets `root`, the checkout, and calls `set_up run` or `set_up dev`; what dev made serves run too.
# Everything is said on stderr. A failure ends the caller with 70, Ctrl-C with 130.
#
#   .venv/packages-KIND   what the packages were installed from; absent while they are being installed
#   .venv/modules-KIND    what the native modules were built from; absent while they are being built
#   build/setup.log       everything the last set-up printed

fault=70
venv=${root:?}/.venv
log=$root/build/setup.log

say() { printf 'hotloop: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit $fault
}

# Exit codes 1 to 4 are verdicts: no slip of a script may look like one.
end_as_fault() {
    local code=$?
    if [ $code -ge 1 ] && [ $code -le 4 ]; then exit $fault; fi
    exit $code
}
trap end_as_fault EXIT
trap 'exit 130' INT

# stage TEXT COMMAND... - one line for the user, everything for the log.
stage() {
    say "$1"
    shift
    "$@" </dev/null >>"$log" 2>&1 && return
    tail -n 25 "$log" >&2
    die "set-up failed; the whole log is in $log"
}

# By content, so that a touched file costs nothing and a restored one is seen.
packages_fingerprint() {
    printf '%s\n' "$root"
    (cd "$root" && cksum pyproject.toml constraints.txt tools/requirements.py)
}

modules_fingerprint() {
    packages_fingerprint
    printf '%s\n' "HOTLOOP_NO_NATIVE=${HOTLOOP_NO_NATIVE:-}" "CXX=${CXX:-}" "$(command -v c++ g++ clang++)"
    (
        cd "$root" || exit
        find CMakeLists.txt native src/hotloop/worlds -type f ! -name '*.py' ! -name '*.pyc' -exec cksum {} + |
            LC_ALL=C sort
        # An installation remembers which modules are folders: where one becomes a folder it is made anew.
        find src/hotloop -name __init__.py | LC_ALL=C sort
    )
}

# is_done STEP KIND
is_done() {
    local now kind kinds=$2
    now=$("$1_fingerprint")
    [ "$kinds" = run ] && kinds='run dev'
    for kind in $kinds; do
        [ "$now" = "$(cat "$venv/$1-$kind" 2>/dev/null)" ] && return
    done
    return 1
}

# do_step STEP KIND TEXT COMMAND... - the fingerprint is taken first: what is edited meanwhile is done again.
do_step() {
    local step=$1 kind=$2 before
    shift 2
    before=$("${step}_fingerprint")
    rm -f "$venv/$step-run" "$venv/$step-dev"
    stage "$@"
    printf '%s\n' "$before" >"$venv/$step-$kind" || die "cannot write to $venv"
}

is_current() {
    [ -x "$venv/bin/python" ] && [ -x "$venv/bin/hotloop" ] && is_done packages "$1" && is_done modules "$1"
}

find_python() {
    local name names=(python3 python python3.14 python3.13 python3.12 python3.11)
    [ -n "${HOTLOOP_PYTHON:-}" ] && names=("$HOTLOOP_PYTHON")
    for name in "${names[@]}"; do
        if "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$name"
            return
        fi
    done
    return 1
}

make_venv() {
    local python
    python=$(find_python) ||
        die "no Python 3.11 or newer with its venv module found: install one, or name it in HOTLOOP_PYTHON"
    rm -rf "$venv" || die "cannot remove $venv"
    stage "making .venv with $("$python" --version)" "$python" -m venv "$venv"
}

# Usable: packages were installed to the end once, here (scripts in a .venv hold its absolute path).
has_venv() {
    "$venv/bin/python" -c 'import pip' 2>/dev/null && cat "$venv"/packages-* 2>/dev/null | grep -qxF "$root"
}

pip_install() {
    "$venv/bin/python" -m pip --disable-pip-version-check install --progress-bar off \
        -c "$root/constraints.txt" "$@"
}

install_packages() {
    "$venv/bin/python" "$root/tools/requirements.py" "$1" >"$venv/requirements.txt" &&
        pip_install -r "$venv/requirements.txt"
}

build_modules() {
    local options=()
    [ "$1" = dev ] && options=(-C cmake.define.HOTLOOP_STRICT=ON)
    pip_install --no-build-isolation --no-deps -v ${options[@]+"${options[@]}"} -e "$root"
}

report_missing_native() {
    local reason='no C++ compiler found'
    "$venv/bin/python" -c '
import importlib.util, sys
sys.exit(not importlib.util.find_spec("hotloop._native"))' && return
    [ -n "${HOTLOOP_NO_NATIVE:-}" ] && reason='HOTLOOP_NO_NATIVE is set'
    say "$reason: worlds run as their Python twins (impl=reference)"
}

make_current() {
    : >"$log" || die "cannot write $log"
    has_venv || make_venv
    is_done packages "$1" || do_step packages "$1" 'installing packages' install_packages "$1"
    do_step modules "$1" 'building the native modules' build_modules "$1"
    report_missing_native
}

set_up() {
    is_current "$1" && return
    mkdir -p "$root/build" || die "cannot write to $root"
    exec 9>"$root/build/setup.lock" || die "cannot write to $root/build"
    if command -v flock >/dev/null && ! flock -n 9; then
        say 'waiting for another set-up to finish'
        flock 9
    fi
    is_current "$1" || make_current "$1"
    exec 9>&-
}
