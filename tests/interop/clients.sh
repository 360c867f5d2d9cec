#!/bin/sh
# Installs Puppetboard, pypuppetdb and a browser's driver into an environment of their own: they would pull this project's packages about.
#
#   sh clients.sh FOLDER          # takes PYTHON, the interpreter of the environment
set -eu
"${PYTHON:-python3}" -m venv --clear "$1"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$(dirname "$0")/clients.txt"
