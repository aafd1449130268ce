"""What every running part is built on: services, test signals, log fields. It knows nothing of jobs or databases."""
