"""`windlass dlq`: one module for looking at many, one for looking at one, one for re-driving and one for purging."""
