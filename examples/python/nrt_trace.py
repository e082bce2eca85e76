"""Spans in the trace from Python, through ctypes and libnrt_trace.

    import nrt_trace

    with nrt_trace.span("train step"):
        ...

    @nrt_trace.traced("load batch", nc=1)
    def load(): ...

A span is an event of type ``generic`` whose first word carries the name's id: ``nrt-tracectl record`` shows it under its
name in the summary, and ``--names`` writes the name into the JSON document.

Without the library, or when nothing records, spans cost a look and do nothing. ``NRT_TRACE_LIBRARY`` names the library
where the loader does not find it; else it is asked for by its soname, as an installation without the headers has it, then by
its plain name.
"""

import contextlib
import ctypes
import functools
import os

GENERIC = 0
START, STOP, INSTANT = 0, 1, 2
DATA_WORDS = 5

# The number is the C API version, which what follows is written for.
LIBRARIES = ("libnrt_trace.so.0", "libnrt_trace.so")

_Data = ctypes.c_uint64 * DATA_WORDS


def _open(names):
    """The first library of these that there is, or None."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _load():
    """The library with its functions' types; None where there is none."""
    named = os.environ.get("NRT_TRACE_LIBRARY")
    library = _open([named] if named else LIBRARIES)
    if library is None:
        return None
    library.nrt_sys_trace_new_event.restype = ctypes.c_uint64
    library.nrt_sys_trace_new_event.argtypes = [
        ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(_Data)]
    library.nrt_sys_trace_capture_intern_string.restype = ctypes.c_uint64
    library.nrt_sys_trace_capture_intern_string.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    library.nrt_trace_wait_armed.restype = ctypes.c_bool
    library.nrt_trace_wait_armed.argtypes = [ctypes.c_uint32]
    library.nrt_trace_page.restype = ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64))
    library.nrt_trace_page.argtypes = []
    return library


_library = _load()
_page = _library.nrt_trace_page() if _library else None
_GATES = 256  # the word of its first gate


def available():
    """Whether the library is there."""
    return _library is not None


def enabled(nc=0, kind=GENERIC):
    """Whether an event of this kind on this NeuronCore would be recorded now."""
    return _page is not None and bool(_page[0][_GATES + (nc if nc < 256 else 0)] >> kind & 1)


def wait_armed(milliseconds):
    """Waits until events are recorded; false if they are not within the time."""
    return _library is not None and _library.nrt_trace_wait_armed(milliseconds)


@functools.lru_cache(maxsize=None)
def intern(name):
    """The id of a name, 0 if it can't be one (a surrogate, a zero byte, or no library)."""
    if _library is None or "\0" in name:
        return 0
    try:
        return _library.nrt_sys_trace_capture_intern_string(0, name.encode("utf-8"))
    except UnicodeEncodeError:
        return 0


def emit(phase, nc=0, tracking_id=0, words=(), kind=GENERIC):
    """Records an event; its tracking id, or 0 if nothing was recorded."""
    if not enabled(nc, kind):
        return 0
    data = _Data(*words)
    return _library.nrt_sys_trace_new_event(kind, phase, nc, tracking_id, ctypes.byref(data))


@contextlib.contextmanager
def span(name, nc=0):
    """A span that lasts as long as the ``with`` block, exceptions included."""
    tracking_id = emit(START, nc, 0, (intern(name),)) if enabled(nc) else 0
    try:
        yield tracking_id
    finally:
        # A stop without its start could only confuse.
        if tracking_id:
            emit(STOP, nc, tracking_id, (intern(name),))


def instant(name, nc=0):
    """An event without duration."""
    return emit(INSTANT, nc, 0, (intern(name),))


def traced(name, nc=0):
    """A decorator: each call is a span."""
    def decorate(function):
        @functools.wraps(function)
        def call(*arguments, **named):
            with span(name, nc):
                return function(*arguments, **named)
        return call
    return decorate
