"""A program that sends a signal: `python -m tests.crash.programs.signaler URL KEY`. It prints `signaled NUMBER`."""

import sys

from tests.crash.programs.application import make_app


def main(url: str, key: str) -> None:
    app = make_app(url)
    print(f"signaled {app.signal(key)}", flush=True)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
