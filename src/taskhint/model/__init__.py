"""The transformer: one decoder class, its parts, its trace, its greedy decoding."""
