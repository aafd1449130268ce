"""The base of every running part: services, duties, executors, processes, failpoints. Knows no jobs and no SQL."""
