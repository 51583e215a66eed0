"""Models in other libraries: transformers, TransformerLens, nnsight."""
