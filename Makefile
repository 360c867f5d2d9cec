# Everything is done in .venv; the first target that needs it makes it. PYTHON: the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q

.PHONY: help demo compose-demo compose-base test check lint types types-page unit e2e interop interop-server peers image modules openapi lock audit \
  sbom bench fleet wheel deb test-packages clean

help:
	@echo "make demo    a master and two agent runs on this machine, in a temporary directory"
	@echo "make compose-demo  the same in containers: a master, two agents; needs docker and docker-compose"
	@echo "make compose-base  a base image for it where no registry is reachable (needs root and debootstrap)"
	@echo "make test    unit, end-to-end and conformance tests"
	@echo "make check   ruff, mypy --strict, then make test"
	@echo "make interop the same against Debian's puppet-agent, which must be installed"
	@echo "make peers   other releases of Puppet in folders (3.8, 5.5, 8), for interop tests (root, debootstrap)"
	@echo "make image   a Debian in a folder, in which interop tests change users, packages and services (needs root)"
	@echo "make types-page  writes docs/types.md anew, from the declarations of types and providers"
	@echo "make modules compiles a use of every module of Debian, here and with Debian's puppet (root)"
	@echo "make interop-server  our agent against Debian's puppetserver where it is installed, and 8.7 where make peers put it"
	@echo "make openapi writes docs/api/openapi.yaml anew, from what routes"
	@echo "make lock    pins what a release needs, with hashes: requirements/release.txt"
	@echo "make audit   asks for known vulnerabilities of these; says so when nobody can be asked"
	@echo "make sbom    dist/bunraku.cdx.json, the bill of materials in CycloneDX"
	@echo "make wheel   a wheel of this project in dist/"
	@echo "make deb     a Debian package with all that it needs, in dist/ (on Debian)"
	@echo "make test-packages  installs both in a plain Debian in a folder and starts them (root, debootstrap)"
	@echo "make bench   measures this against Debian's puppet-agent"
	@echo "make fleet   a thousand simulated agents at one master, all at once"
	@echo "make clean   removes what the above have made"

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=23.2'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,ldap]'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/python demo/run.py

compose-demo: $(VENV)/.installed
	@$(BIN)/python demo/compose.py

# demo/compose.py and its test look for it at this place; keep them equal.
COMPOSE_BASE ?= $(or $(BUNRAKU_BASE_FOLDER),/var/tmp/bunraku-base)
compose-base: $(COMPOSE_BASE)
$(COMPOSE_BASE): | $(VENV)/.installed
	PYTHON=$(CURDIR)/$(BIN)/python sh demo/containers/base.sh $@

test: $(VENV)/.installed
	$(PYTEST) -m "not interop"

unit: $(VENV)/.installed
	$(PYTEST) -m "not interop and not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

# Written beside first: a page that cannot be made leaves the old one.
types-page: $(VENV)/.installed
	$(BIN)/python -m tests.types_page > docs/types.md.new && mv docs/types.md.new docs/types.md

check: lint types test

interop: $(VENV)/.installed
	$(PYTEST) -m interop tests/interop tests/conformance

# Tests look for them at this place; keep the two equal.
peers:
	@sh tests/interop/peers.sh $(or $(BUNRAKU_PEERS),/var/tmp/bunraku-peers)

# Tests look for it at this place; keep the two equal.
IMAGE ?= $(or $(BUNRAKU_IMAGE),/var/tmp/bunraku-apply-image)
image: $(IMAGE)/srv/more
$(IMAGE):
	sh tests/conformance/apply/image.sh $@
$(IMAGE)/srv/more: tests/conformance/apply/packages.sh | $(IMAGE)
	sh tests/conformance/apply/packages.sh $(IMAGE)

modules: $(VENV)/.installed
	@$(BIN)/python -m tests.modules.run --install

interop-server: $(VENV)/.installed
	$(PYTEST) tests/interop/test_real_server.py

openapi: $(VENV)/.installed
	$(BIN)/python -m master.http.openapi > docs/api/openapi.yaml.new
	mv docs/api/openapi.yaml.new docs/api/openapi.yaml

$(VENV)/.release: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@touch $@

# What a release is installed with, each file by its hash. Where the packages came from is not written down.
lock: $(VENV)/.release
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras --extra ldap --no-header \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file requirements/release.txt pyproject.toml

audit: $(VENV)/.release
	@$(BIN)/python .ci/audit

sbom: $(VENV)/.release
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON \
	  --output-file dist/bunraku.cdx.json requirements/release.txt

wheel: $(VENV)/.installed
	rm -rf dist/*.whl
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

deb: wheel
	sh packaging/deb/build.sh dist/*.whl dist $(BIN)/python

# Tests look for it at this place; keep the two equal.
PACKAGE_IMAGE ?= $(or $(BUNRAKU_PACKAGE_IMAGE),/var/tmp/bunraku-package-image)
$(PACKAGE_IMAGE):
	sh packaging/deb/image.sh $@

test-packages: $(VENV)/.installed $(PACKAGE_IMAGE)
	BUNRAKU_TEST_PACKAGES=1 $(PYTEST) tests/packages

bench: $(VENV)/.installed
	@$(BIN)/python tests/bench/run.py

fleet: $(VENV)/.installed
	@$(BIN)/python tests/bench/fleet.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
