# The manual; `make docs` writes its site.
.PHONY: man changelog

# The manual's pages for `man`, which packages contain: in man/, and in pipeline/man/ those of the pipeline.
man: running ## write the man pages to man/
	$(PY) -m manual.man man pipeline/man

changelog: venv ## show the news since the last version (VERSION=0.3.0 to make its page in CHANGELOG.md)
	$(PY) -m towncrier build $(if $(VERSION),--version $(VERSION),--draft --version next)
