"""The application of a worker that is started by the command line; its URL is in the environment."""

from tests.crash.programs.application import make_app

app = make_app(None)
