"""A program that starts a job over: `python -m tests.crash.programs.retrier URL ID`. It prints `retried ID`."""

import sys

from tests.crash.programs.application import make_app


def main(url: str, job_id: str) -> None:
    app = make_app(url)
    if app.retry(job_id):
        print(f"retried {job_id}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
