"""The program ``axil`` from its first moment, when an interrupt ends it without a word.

It stands outside of the package, whose import is a part of what it waits for.
"""

import os
import signal

_INTERRUPTED = 130


def script() -> None:
    """Run the command as a program, and end the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, _leave)
    from axil_cli.main import script as run

    try:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)


def _leave(number: int, frame: object) -> None:
    os._exit(_INTERRUPTED)
