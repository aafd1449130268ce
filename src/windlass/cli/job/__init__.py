"""`windlass job`: jobs listed, shown, moved and followed, one module for each command."""
