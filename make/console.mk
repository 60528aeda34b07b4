# The web console in trouter/http/console/, which packages contain, from its sources in console/.
.PHONY: console console-if-possible console-beside test-console console-tests node-system browser-system

CONSOLE     := trouter/http/console/index.html
CONSOLE_OF  := $(shell [ -d console ] && find console -path console/node_modules -prune -o -path console/e2e -prune -o -path console/test-results -prune -o -type f -print)
NODE_READY  := console/node_modules/.package-lock.json
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD = 1

# It is built if a source is newer and Node is installed.
console: node-system ## build the web console (with Node.js 18 or later); run and test do it too
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(CONSOLE); fi
$(CONSOLE): $(NODE_READY) $(CONSOLE_OF)
	cd console && npm run --silent build
	@touch $@
# Not `npm ci`: it needs packages of other platforms too, which some registries lack.
$(NODE_READY): console/package-lock.json
	cd console && npm install --silent --no-save --no-audit --no-fund
	@touch $@

# Optional: the router also runs without the console.
console-if-possible: system
	@$(MAKE) --no-print-directory console || echo "make: the web console is not built, for the reason above" >&2

console-beside:
	@mkdir -p build
	@if command -v npm >/dev/null 2>&1; then $(MAKE) console >build/console.log 2>&1 || \
	    echo "make: the web console is not built; build/console.log says why" >&2; \
	  elif [ ! -e $(CONSOLE) ]; then \
	    echo "make: there is no npm, so no web console; 'make console' installs what it needs and builds it" >&2; fi

test-console: venv build console browser-system ## check the web console, also in a browser; output in build/test-console.log (ARGS for Playwright)
	@$(MAKE) --no-print-directory console-tests

# Without prerequisites, so that parts of `make test` begin beside each other.
console-tests:
	@mkdir -p build
	cd console && export PYTHON=$(abspath $(PY)) && \
	  { npm run lint && npm run types && npm run unit && npm run e2e -- $(ARGS); } >../build/test-console.log 2>&1

node-system: system
	$(call wants,npm)

browser-system: node-system
	$(call needs,npm chromium)
