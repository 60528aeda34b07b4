# The manual; `make docs` writes its site.
.PHONY: man

# The manual's pages for `man`, which packages contain: in man/, and in pipeline/man/ those of the pipeline.
man: running ## write the man pages to man/
	$(PY) -m manual.man man pipeline/man
