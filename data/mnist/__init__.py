"""The four MNIST files, as the package bilevel_core.mnist."""
