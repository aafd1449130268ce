"""`windlass bench`: what a store can do, workload by workload; each is checked for lost and repeated jobs.

A workload runs on a fresh database. Whatever drains jobs runs in processes of its own (`child`), started before the
clock and let go together, so that imports are not measured; times of several processes are compared by the monotonic
clock, which they share on one machine. Floors, targets, a check of every table and comparisons with other queues are
development tools: they are in the project's `benchmarks/` and use these modules.
"""
