"""One file for each experiment, as the package bilevel_core.configurations."""
