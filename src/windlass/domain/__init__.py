"""Values and rules: standard library only, no input or output, and no clock outside `clock`."""
