"""`python -m windlass` is the `windlass` command."""

from windlass_command import main

if __name__ == "__main__":
    main()
