"""`windlass job`: one module for looking at many, one for looking at one, one for moving them, one for following."""
