"""`windlass reject`: rejected items listed, grouped and re-driven, one module for each command."""
