#!/bin/sh
# Says in one line what is missing to make .venv with an interpreter, and ends with 1; and what else will be missed, if it can be done without.
# Argument: the interpreter.
set -eu
python=$1

missing() {
  echo "$1" >&2
  exit 1
}

command -v "$python" > /dev/null || missing "$python is missing (Debian: apt install python3)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  missing "$python is $("$python" --version), and 3.11 or a newer one is needed: make PYTHON=python3.11 ..."
"$python" -c 'import ensurepip, venv' 2> /dev/null ||
  missing "$python can make no virtual environment, its module venv or ensurepip is missing (Debian: apt install python3-venv)"
command -v git > /dev/null ||
  echo "Git is missing (Debian: apt install git): the demo's preview is left out, and tests that need Git are skipped" >&2
