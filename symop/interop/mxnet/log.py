"""``mx.log``: loggers with a level and an output."""

import logging

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]
CRITICAL, ERROR, WARNING = logging.CRITICAL, logging.ERROR, logging.WARNING
INFO, DEBUG, NOTSET = logging.INFO, logging.DEBUG, logging.NOTSET
_FORMAT = "%(levelname).1s%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d] %(message)s"


def get_logger(
    name: str | None = None,
    filename: str | None = None,
    filemode: str | None = None,
    level: int = WARNING,
) -> logging.Logger:
    """A logger that writes to a file, or to the standard error stream.

    Args:
        name: its name; the root logger is returned unchanged.
        filename: the name of the file.
        filemode: the mode of the file; defaults to appending.
        level: the minimal level of messages.
    """
    logger = logging.getLogger(name)
    if name is None or logger.handlers:
        return logger
    handler: logging.Handler = logging.StreamHandler()
    if filename:
        handler = logging.FileHandler(filename, filemode or "a")
    handler.setFormatter(logging.Formatter(_FORMAT, "%m%d %H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(level)
    return logger


getLogger = get_logger  # noqa: N816  # MXNet's older name
