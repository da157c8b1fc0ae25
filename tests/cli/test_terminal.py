"""Of all that steers a terminal only what is ours reaches it."""

from __future__ import annotations

import io

from rarefy.cli.terminal import GuardedStream


def test_a_guarded_stream_leaves_what_is_ours() -> None:
    stream = io.StringIO()
    ours = "\x1b[1;31mred\x1b[0m\tx\r\x1b[2K\x1b[1A\x1b[?25l\n"
    assert GuardedStream(stream).write(ours) == len(ours)
    GuardedStream(stream).write("\x1b]0;a\x07 \x1b[2J\u202e\udcff")
    assert stream.getvalue() == ours + r"\x1b]0;a\x07 \x1b[2J\u202e\udcff"
    assert GuardedStream(stream).getvalue() == stream.getvalue()
