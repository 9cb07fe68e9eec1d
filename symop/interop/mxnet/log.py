"""``mx.log``: loggers with a level and a place."""

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
    """A logger that writes into a file, or to the standard error.

    Args:
        name: of the logger; that without a name is left as it is.
        filename: of the file.
        filemode: how it is opened; what is there stays unless told.
        level: what is less is not written.
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
