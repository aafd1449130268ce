"""Loggers whose handlers cannot stop the engine.

A handler that raises (a chat service while the network is down) is the user's, and its error would surface wherever the
engine logs: between a verdict and its write, or in a timer. Here it becomes a line on standard error.
"""

from __future__ import annotations

import logging
import sys


class CarefulLogger(logging.Logger):
    """A logger that survives handlers that raise."""

    def handle(self, record: logging.LogRecord) -> None:
        """Pass a record to the handlers; one that raises loses this record only."""
        try:
            super().handle(record)
        except Exception as error:  # noqa: BLE001 - a handler of the user's
            if sys.stderr is not None:
                sys.stderr.write(f"windlass: a logging handler raised {type(error).__name__}; the record is lost\n")


def logger(name: str) -> logging.Logger:
    """Return the logger of a part of Windlass; one that exists already is unchanged."""
    usual = logging.getLoggerClass()
    logging.setLoggerClass(CarefulLogger)
    try:
        return logging.getLogger(name)
    finally:
        logging.setLoggerClass(usual)
