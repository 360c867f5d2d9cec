"""What a long command shows of itself."""

from __future__ import annotations

import io

from bunraku.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *seconds: float) -> str:
    """What is written when progress is made at these times."""
    times = [0.0, *seconds] if not stream.isatty() else list(seconds)
    with ProgressLine(stream, lambda: times.pop(0)) as line:
        for number in range(len(seconds)):
            line.show_part("copied", number * 300, 1200, "rows")
    return stream.getvalue()


def test_a_terminal_has_one_line_that_changes_and_disappears() -> None:
    assert shown(Terminal(), 100.0, 100.05, 100.2) == ("\r\x1b[Kcopied 0 of 1200 rows (0 %)\r\x1b[Kcopied 600 of 1200 rows (50 %)\r\x1b[K")


def test_a_line_is_no_longer_than_the_terminal() -> None:
    terminal = Terminal()
    with ProgressLine(terminal, lambda: 1.0) as line:
        line.show("x" * 1000)
    assert len(terminal.getvalue().split("\r\x1b[K")[1]) < 1000


def test_a_file_has_a_line_every_ten_seconds() -> None:
    assert shown(io.StringIO(), 1.0, 11.0, 12.0, 22.0) == "copied 300 of 1200 rows (25 %)\ncopied 900 of 1200 rows (75 %)\n"


def test_a_command_that_is_quick_says_nothing() -> None:
    assert shown(io.StringIO(), 1.0, 2.0) == ""
    assert shown(Terminal()) == ""


def test_nothing_of_nothing_has_no_share() -> None:
    terminal = Terminal()
    with ProgressLine(terminal, lambda: 1.0) as line:
        line.show_part("copied", 0, 0, "rows")
    assert "copied 0 of 0 rows\r" in terminal.getvalue()
