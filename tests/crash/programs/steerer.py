"""A program that cancels jobs: `python -m tests.crash.programs.steerer URL ID…`. It prints `canceled ID` for each."""

import sys

from tests.crash.programs.application import make_app


def main(url: str, *ids: str) -> None:
    app = make_app(url)
    for job_id in ids:
        if app.cancel(job_id):
            print(f"canceled {job_id}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
