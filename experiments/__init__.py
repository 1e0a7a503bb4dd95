"""The experiments, each a TOML file; installed as `bilevel_core.configurations`."""
