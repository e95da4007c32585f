#!/bin/bash
# Stands in for Python in tests of the set-up: notes its calls, and makes what venv and pip would make.
# FAKE_CALLS: where calls are noted. FAKE_FAIL: the pip option (-r or -e) whose call fails.
# FAKE_GATE: two FIFOs, GATE.in and GATE.out; the build says "building" into one and waits for a line from the other.
echo "$*" >>"$FAKE_CALLS"
[ "$1 $2" = '-m pip' ] && echo 'Collecting things'
case " $* " in
*" --version "*)
    echo 'Python 3.11.0'
    ;;
*" -m venv "*)
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    ;;
*" -m pip "*" ${FAKE_FAIL:-none} "*)
    echo 'the reason of the failure'
    exit 1
    ;;
*" -e "*)
    if [ -n "${FAKE_GATE:-}" ]; then
        echo building >"$FAKE_GATE.in"
        read -r _ <"$FAKE_GATE.out"
    fi
    # shellcheck disable=SC2016
    printf '#!/bin/bash\necho "$PWD|$*"\nexit "${FAKE_EXIT:-0}"\n' >"${0%/*}/hotloop"
    chmod +x "${0%/*}/hotloop"
    ;;
esac
