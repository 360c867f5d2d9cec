#!/bin/sh
# Installs what a lock names, each file by its hash, and this project on top of it. Where that cannot be had (the index has a version no longer,
# or this Python needs others), one line says so, and the newest versions that fit are installed. A file that is another one than the lock
# says is an error.
# Arguments: the interpreter; the lock; the options for pip without the lock.
set -eu
python=$1
lock=$2
shift 2

install() {
  "$python" -m pip install --quiet --disable-pip-version-check "$@"
}

if said=$(install --require-hashes --requirement "$lock" 2>&1); then
  exec "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
fi
case $said in
  *"DO NOT MATCH THE HASHES"*)
    printf '%s\n' "$said" >&2
    exit 1
    ;;
esac
reason=$(printf '%s\n' "$said" | sed -n 's/^ERROR: //p' | tail -n 1)
echo "$lock cannot be installed as it is, the newest versions that fit are taken: ${reason:-pip does not say why}" >&2
install --upgrade "$@"
