"""`windlass bench`: what a store can do, workload by workload; each is checked for lost and repeated jobs.

A workload runs on a fresh database. Whatever drains jobs runs in processes of its own (`child`), started before the
clock and told when to go, so that imports are not measured; times of several processes are compared by the monotonic
clock, which they share on one machine.
"""
