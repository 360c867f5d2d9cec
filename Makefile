# Everything is done in .venv; the first target that needs it makes it. PYTHON: the interpreter it is made from.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q
GATE := $(BIN)/python -m tests.gate
# How many processes run the tests: a number, or auto for one a processor.
WORKERS ?= auto
export WORKERS

# What tests need and what takes long to make; tests/gate/caches.py says how each is made and where it is.
CACHES := puppet8 puppet5 puppet3 image package-image clients debian-modules stdlib twins-image bare-bookworm bare-trixie

.PHONY: help demo recording compose-demo compose-base test gate full unit lint types types-page compatibility-page docs \
  caches $(CACHES) modules field twins openapi lock changelog audit sbom bench chart fleet soak fuzz wheel sdist deb release container test-packages clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# In the versions of requirements/dev.txt, so that what others release changes no result here.
$(VENV)/.installed: pyproject.toml shared/__init__.py requirements/dev.txt requirements/install.sh
	@sh requirements/check.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	sh requirements/install.sh $(BIN)/python requirements/dev.txt --editable '.[dev,ldap,postgresql]'
	@touch $@

demo: $(VENV)/.installed ## a master, an agent's runs, a query, a preview of a change on a hundred machines, and its rollout
	@$(BIN)/python demo/run.py

recording: $(VENV)/.installed ## draws docs/demo.svg and the pictures of a preview from runs of the demo on a quiet machine (chromium)
	@$(BIN)/python demo/record.py
	@$(BIN)/python -m tests.interop.pictures

compose-demo: $(VENV)/.installed ## the same in containers: a master, two agents, Puppetboard; needs docker and Compose, 1.29 or 2
	@$(BIN)/python demo/compose.py $(COMPOSE)

compose-base: $(VENV)/.installed ## a base image for it where no registry is reachable (root, debootstrap)
	@$(BIN)/python tests/gate/caches.py $@
	@$(BIN)/python demo/compose.py --base

test: $(VENV)/.installed ## all tests that need no real program and not the machine for themselves
	@$(GATE) unit slow

gate: $(VENV)/.installed ## lint, types, architecture, then make test, then a choice of real programs; what .ci/run runs
	@$(GATE) --begin static
	@$(MAKE) --no-print-directory test
	@$(GATE) --end peers alone

full: $(VENV)/.installed ## everything, all releases of Puppet and booted systems too (root); PART=2/4 is the second of four parts
	@$(GATE) --full $(if $(PART),--part $(PART))

unit: $(VENV)/.installed ## make test without the slow ones
	@$(GATE) unit

lint: $(VENV)/.installed ## ruff and vulture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: $(VENV)/.installed ## mypy --strict
	$(BIN)/mypy

# Written beside first: a page that cannot be made leaves the old one.
types-page: $(VENV)/.installed ## writes docs/types.md, from the declarations of types and providers
	$(BIN)/python -m tests.support.types_page > docs/types.md.new && mv docs/types.md.new docs/types.md

compatibility-page: $(VENV)/.installed ## writes the list of tests in docs/compatibility.md, from their marks works_with
	$(BIN)/python -m tests.support.compatibility_page

docs: $(VENV)/.installed ## the documentation as a site in build/docs/site, which any web server can serve
	@$(BIN)/python packaging/docs/pages.py build/docs/pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file packaging/docs/mkdocs.yml
	@echo "Read it at http://127.0.0.1:8000: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/site"

caches: ## what the full run needs and what takes long to make: systems in folders, other releases of Puppet (root, debootstrap)
	@$(PYTHON) tests/gate/caches.py $(CACHES)

# One of them.
$(CACHES):
	@$(PYTHON) tests/gate/caches.py $@

modules: $(VENV)/.installed ## compiles a use of every module of Debian, here and with Debian's puppet (root)
	@$(BIN)/python -m tests.modules.run --install

field: $(VENV)/.installed ## compiles public control repositories, here and with the real Puppet; SITES=FOLDER, FIELD="ocf --every 10" (docs/compatibility.md)
	@$(BIN)/python -m tests.field $(SITES) $(FIELD)

# All of them, with --write: docs/modules.md shows the results when it is next written.
twins: $(VENV)/.installed twins-image ## applies modules to two booted Debians, by Debian's puppet and by ours, and compares (root); TWINS="mysql apt"
	@$(BIN)/python -m tests.twins.run $(or $(TWINS),--write)

openapi: $(VENV)/.installed ## writes docs/api/*.yaml, from the declared routes
	$(BIN)/python -m tests.support.master_openapi > docs/api/openapi.yaml.new
	mv docs/api/openapi.yaml.new docs/api/openapi.yaml
	$(BIN)/python -m tests.support.store_openapi > docs/api/store.yaml.new
	mv docs/api/store.yaml.new docs/api/store.yaml

$(VENV)/.release: $(VENV)/.installed requirements/releasing.txt
	sh requirements/install.sh $(BIN)/python requirements/releasing.txt --editable '.[release]'
	@touch $@

# What a release is installed with and its wheel made with, what this checkout is tested with and a release made with, each file by its hash.
# Where the packages came from is not written down. The last two agree with the first.
LOCKED := $(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
WORKING := --allow-unsafe --build-deps-for editable --constraint requirements/release.txt
lock: $(VENV)/.release ## pins what a release, its wheel, these tests and making a release need, with hashes: requirements/
	$(LOCKED) --extra master --extra ldap --extra postgresql --output-file requirements/release.txt pyproject.toml
	$(LOCKED) --build-deps-for wheel --only-build-deps --output-file requirements/build.txt pyproject.toml
	$(LOCKED) --output-file requirements/puppetboard.txt requirements/puppetboard.in
	$(LOCKED) $(WORKING) --extra dev --extra ldap --extra postgresql --output-file requirements/dev.txt pyproject.toml
	$(LOCKED) $(WORKING) --constraint requirements/dev.txt --extra master --extra release --output-file requirements/releasing.txt pyproject.toml

changelog: $(VENV)/.release ## moves the texts in changelog/ into CHANGELOG.md, below the version in shared/__init__.py
	$(BIN)/towncrier build --yes
	$(BIN)/python -m tests.support.markdown CHANGELOG.md

audit: $(VENV)/.release ## asks for known vulnerabilities of these; says so when nobody can be asked
	@$(BIN)/python .ci/audit

sbom: $(VENV)/.release ## dist/bunraku.cdx.json, the bill of materials in CycloneDX
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON \
	  --output-file dist/bunraku.cdx.json requirements/release.txt

# Of its own: a package needs nothing that only tests need, and what it is made with does not pull their packages about.
BUILDING := $(VENV)/building
$(BUILDING)/.installed: requirements/build.txt
	@sh requirements/check.sh $(PYTHON)
	$(PYTHON) -m venv --clear $(BUILDING)
	$(BUILDING)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --requirement requirements/build.txt
	@touch $@

wheel: $(BUILDING)/.installed ## a wheel of this project in dist/
	rm -rf dist/*.whl
	$(BUILDING)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

sdist: $(BUILDING)/.installed ## its sources as an archive in dist/
	rm -rf dist/*.tar.gz
	$(BUILDING)/bin/python -m hatchling build --target sdist --directory dist > /dev/null

# From a copy of the files that Git knows, so that nothing of this folder gets in.
release: $(VENV)/.installed bare-bookworm bare-trixie ## all that a release consists of, in dist/, built on bare Debians (root, debootstrap)
	rm -rf dist
	@$(BIN)/python -m tests.packages.release dist
	cd dist && sha256sum *.whl *.tar.gz *.deb *.json > SHA256SUMS

container: $(VENV)/.installed ## the image bunraku with the version as its tag; needs docker
	docker build --tag bunraku --tag bunraku:$$($(BIN)/python -c 'import shared; print(shared.__version__)') .

deb: wheel ## a Debian package with all that it needs, in dist/ (on Debian)
	rm -rf dist/*.deb
	sh packaging/deb/build.sh dist/*.whl dist $(BUILDING)/bin/python

test-packages: release package-image ## installs a release on plain Debians in folders and starts it (root, debootstrap)
	$(PYTEST) tests/packages/test_clean_system.py tests/packages/test_services.py tests/packages/test_installing.py tests/packages/test_upgrading.py

bench: $(VENV)/.installed ## measures this against Debian's puppet-agent, puppetserver and puppetdb; BENCH="--only store --nodes 300"
	@$(BIN)/python tests/bench/run.py $(BENCH)

# NUMBERS: what BENCH="--output FILE" has written, to take the place of docs/performance.json.
chart: $(VENV)/.installed ## draws docs/performance.svg from docs/performance.json or NUMBERS=FILE
	@$(BIN)/python tests/bench/chart.py $(NUMBERS)

fleet: $(VENV)/.installed ## a thousand simulated agents at one master, all at once
	@$(BIN)/python tests/bench/fleet.py

soak: $(VENV)/.installed ## ten minutes of load on a master while things go wrong around it (disks: root; clock: cc); MASTERS=3: on three with one database
	@$(BIN)/python tests/soak/$(if $(MASTERS),masters.py --masters $(MASTERS),run.py) $(SOAK)

# The reference's stdlib is not installed but unpacked; without it the questions about it are left out, which is said.
SEED ?= 1
QUESTIONS ?= 10000
fuzz: $(VENV)/.installed stdlib ## asks Debian's puppet and ours generated questions; SEED=, QUESTIONS=, FUZZ="--json FILE --topic hiera"
	@$(BIN)/python -m tests.fuzz --seed $(SEED) --questions $(QUESTIONS) $(FUZZ)

clean: ## removes what the above have made
	[ ! -e .env ] || sed -i '/^BUNRAKU_B/d' .env
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
