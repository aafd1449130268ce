"""What every running part is built on: services, duties, executors, processes, failpoints. Knows no jobs and no SQL."""
