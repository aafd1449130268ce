"""What happens when a job fails: is it tried again, when, and what may be said about the error."""
