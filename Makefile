# Everything is done in .venv; the first target that needs it makes it. PYTHON: the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q
# How many processes run the tests: a number, or auto for one a processor. The tests of a file stay together, so that they share a server.
WORKERS ?= auto
PARALLEL := -n $(WORKERS) --dist loadfile

.PHONY: help demo compose-demo compose-base test check lint types types-page unit e2e interop interop-server peers clients image debian-modules modules twins \
  twins-image openapi lock audit \
  sbom bench chart fleet soak fuzz wheel deb package-image test-packages clean

help:
	@echo "make demo    a master, two agent runs and a preview of a change on a hundred machines, in temporary directories"
	@echo "make compose-demo  the same in containers: a master, two agents, Puppetboard; needs docker and Compose, 1.29 or 2"
	@echo "make compose-base  a base image for it where no registry is reachable (needs root and debootstrap)"
	@echo "make test    unit, end-to-end and conformance tests"
	@echo "make unit    the same without the slow ones"
	@echo "make check   ruff, vulture, mypy --strict, then make test"
	@echo "make interop the same against Debian's puppet-agent, which must be installed"
	@echo "make peers   other releases of Puppet in folders (3.8, 5.5, 8), for interop tests (root, debootstrap)"
	@echo "make clients Puppetboard, pypuppetdb and a browser's driver in a folder, for interop tests"
	@echo "make image   a Debian in a folder, in which interop tests change users, packages and services (needs root)"
	@echo "make types-page  writes docs/types.md anew, from the declarations of types and providers"
	@echo "make debian-modules  Debian's modules in a folder, whose types in Ruby interop tests load"
	@echo "make modules compiles a use of every module of Debian, here and with Debian's puppet (root)"
	@echo "make twins   applies uses of modules to two booted Debians, by Debian's puppet and by ours, and compares them (root); TWINS=\"mysql apt\""
	@echo "make twins-image  what these boot from, with the packages that they install"
	@echo "make interop-server  our agent against Debian's puppetserver where it is installed, and 8.7 where make peers put it"
	@echo "make openapi writes docs/api/*.yaml anew, from what routes"
	@echo "make lock    pins what a release, its wheel, these tests and making a release need, with hashes: requirements/"
	@echo "make audit   asks for known vulnerabilities of these; says so when nobody can be asked"
	@echo "make sbom    dist/bunraku.cdx.json, the bill of materials in CycloneDX"
	@echo "make wheel   a wheel of this project in dist/"
	@echo "make deb     a Debian package with all that it needs, in dist/ (on Debian)"
	@echo "make test-packages  installs both in a plain Debian in a folder and starts them (root, debootstrap)"
	@echo "make package-image  that plain Debian alone"
	@echo "make bench   measures this against Debian's puppet-agent, puppetserver and puppetdb; BENCH=\"--only store --nodes 300\""
	@echo "make chart   draws docs/performance.svg anew, from docs/performance.json or NUMBERS=FILE"
	@echo "make fleet   a thousand simulated agents at one master, all at once"
	@echo "make soak    ten minutes of load on a master while things go wrong around it (disks: root; clock: cc)"
	@echo "make fuzz    asks Debian's puppet and ours generated questions; SEED=, QUESTIONS=, FUZZ=\"--json FILE --topic hiera\""
	@echo "make clean   removes what the above have made"

# In the versions of requirements/dev.txt, so that what others release changes no result here.
$(VENV)/.installed: pyproject.toml requirements/dev.txt requirements/install.sh
	$(PYTHON) -m venv $(VENV)
	sh requirements/install.sh $(BIN)/python requirements/dev.txt --editable '.[dev,ldap,postgresql]'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/python demo/run.py && $(BIN)/python demo/fleet.py

compose-demo: $(VENV)/.installed
	@$(BIN)/python demo/compose.py $(COMPOSE)

# demo/compose.py and its test look for it at this place; keep them equal. One that was made by another lock is made anew.
COMPOSE_BASE ?= $(or $(BUNRAKU_BASE_FOLDER),/var/tmp/bunraku-base)
compose-base: $(VENV)/.installed
	cat requirements/build.txt requirements/puppetboard.txt requirements/release.txt | cmp -s - $(COMPOSE_BASE)/lock.txt || \
	  PYTHON=$(CURDIR)/$(BIN)/python sh demo/containers/base.sh $(COMPOSE_BASE)
	@BUNRAKU_BASE_FOLDER=$(COMPOSE_BASE) $(BIN)/python demo/compose.py --base

test: $(VENV)/.installed
	$(PYTEST) $(PARALLEL) -m "not interop"

unit: $(VENV)/.installed
	$(PYTEST) $(PARALLEL) -m "not interop and not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: $(VENV)/.installed
	$(BIN)/mypy

# Written beside first: a page that cannot be made leaves the old one.
types-page: $(VENV)/.installed
	$(BIN)/python -m tests.support.types_page > docs/types.md.new && mv docs/types.md.new docs/types.md

check: lint types test

interop: $(VENV)/.installed
	$(PYTEST) $(PARALLEL) -m interop tests/interop tests/conformance

# Tests look for them at this place; keep the two equal.
peers:
	@sh tests/interop/peers.sh $(or $(BUNRAKU_PEERS),/var/tmp/bunraku-peers)

# Tests look for them at this place; keep the two equal. They stay apart from this project's own, which they would pull about.
CLIENTS ?= $(or $(BUNRAKU_CLIENTS),/var/tmp/bunraku-clients)
clients:
	@cmp -s tests/interop/clients.txt $(CLIENTS)/installed.txt || { \
	  $(PYTHON) -m venv --clear $(CLIENTS) && \
	  $(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/interop/clients.txt && \
	  cp tests/interop/clients.txt $(CLIENTS)/installed.txt; }

# Tests look for it at this place; keep the two equal.
IMAGE ?= $(or $(BUNRAKU_IMAGE),/var/tmp/bunraku-apply-image)
image: $(IMAGE)/srv/more
$(IMAGE):
	sh tests/conformance/apply/image.sh $@
$(IMAGE)/srv/more: tests/conformance/apply/packages.sh | $(IMAGE)
	sh tests/conformance/apply/packages.sh $(IMAGE)

# Tests look for them at this place; keep the two equal.
debian-modules:
	@sh tests/interop/debian_modules.sh $(or $(BUNRAKU_MODULES),/var/tmp/bunraku-modules)

modules: $(VENV)/.installed
	@$(BIN)/python -m tests.modules.run --install

# Tests look for it at this place; keep the two equal.
TWINS_IMAGE ?= $(or $(BUNRAKU_TWINS_IMAGE),/var/tmp/bunraku-twins-image)
twins-image: $(TWINS_IMAGE)/srv/twins/packages.txt
$(TWINS_IMAGE)/srv/twins/packages.txt: tests/twins/packages.txt tests/twins/image.sh | $(IMAGE)/srv/more
	sh tests/twins/image.sh $(IMAGE) $(TWINS_IMAGE) tests/twins/packages.txt

# All of them, with --write: docs/modules.md tells the results once it is made anew.
twins: $(VENV)/.installed twins-image
	@$(BIN)/python -m tests.twins.run $(or $(TWINS),--write)

interop-server: $(VENV)/.installed
	BUNRAKU_PUPPETSERVER=yes $(PYTEST) tests/interop/test_real_server.py tests/interop/test_commands_beside_puppetserver.py \
	  tests/interop/test_puppetserver_on_the_store.py

openapi: $(VENV)/.installed
	$(BIN)/python -m master.endpoints.openapi > docs/api/openapi.yaml.new
	mv docs/api/openapi.yaml.new docs/api/openapi.yaml
	$(BIN)/python -m store.endpoints.openapi > docs/api/store.yaml.new
	mv docs/api/store.yaml.new docs/api/store.yaml

$(VENV)/.release: $(VENV)/.installed requirements/releasing.txt
	sh requirements/install.sh $(BIN)/python requirements/releasing.txt --editable '.[release]'
	@touch $@

# What a release is installed with and its wheel made with, what this checkout is tested with and a release made with, each file by its hash.
# Where the packages came from is not written down. The last two agree with the first.
LOCKED := $(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
WORKING := --allow-unsafe --build-deps-for editable --constraint requirements/release.txt
lock: $(VENV)/.release
	$(LOCKED) --extra ldap --extra postgresql --output-file requirements/release.txt pyproject.toml
	$(LOCKED) --build-deps-for wheel --only-build-deps --output-file requirements/build.txt pyproject.toml
	$(LOCKED) --output-file requirements/puppetboard.txt requirements/puppetboard.in
	$(LOCKED) $(WORKING) --extra dev --extra ldap --extra postgresql --output-file requirements/dev.txt pyproject.toml
	$(LOCKED) $(WORKING) --constraint requirements/dev.txt --extra release --output-file requirements/releasing.txt pyproject.toml

audit: $(VENV)/.release
	@$(BIN)/python .ci/audit

sbom: $(VENV)/.release
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON \
	  --output-file dist/bunraku.cdx.json requirements/release.txt

# Of its own, so that what a wheel is made with and what this checkout is tested with do not pull each other about.
BUILDING := $(VENV)/building
$(BUILDING)/.installed: requirements/build.txt | $(VENV)/.installed
	$(BIN)/python -m venv --clear $(BUILDING)
	$(BIN)/python -m pip --python $(BUILDING)/bin/python install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --requirement requirements/build.txt
	@touch $@

wheel: $(BUILDING)/.installed
	rm -rf dist/*.whl
	$(BIN)/python -m pip --python $(BUILDING)/bin/python wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir dist .

deb: wheel
	sh packaging/deb/build.sh dist/*.whl dist $(BIN)/python

# Tests look for it at this place; keep the two equal.
PACKAGE_IMAGE ?= $(or $(BUNRAKU_PACKAGE_IMAGE),/var/tmp/bunraku-package-image)
$(PACKAGE_IMAGE):
	sh packaging/deb/image.sh $@

package-image: $(PACKAGE_IMAGE)

test-packages: deb package-image
	BUNRAKU_TEST_PACKAGES=$(CURDIR)/dist $(PYTEST) tests/packages

bench: $(VENV)/.installed
	@$(BIN)/python tests/bench/run.py $(BENCH)

# NUMBERS: what BENCH="--output FILE" has written, to take the place of docs/performance.json.
chart: $(VENV)/.installed
	@$(BIN)/python tests/bench/chart.py $(NUMBERS)

fleet: $(VENV)/.installed
	@$(BIN)/python tests/bench/fleet.py

soak: $(VENV)/.installed
	@$(BIN)/python tests/soak/run.py $(SOAK)

# The reference's stdlib is not installed but unpacked; without it the questions about it are left out.
SEED ?= 1
QUESTIONS ?= 10000
fuzz: $(VENV)/.installed
	@sh tests/fuzz/stdlib.sh $(or $(BUNRAKU_STDLIB),/var/tmp/bunraku-stdlib) || true
	@$(BIN)/python -m tests.fuzz --seed $(SEED) --questions $(QUESTIONS) $(FUZZ)

clean:
	[ ! -e .env ] || sed -i '/^BUNRAKU_B/d' .env
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
