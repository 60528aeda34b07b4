"""The jobs, one module each: parameters, functions of frames, and ``run`` from records to tables."""
