"""The text of an INI file, changed setting by setting; everything else in it stays as it is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shared.errors import ResourceError


@dataclass(frozen=True, slots=True)
class IniStyle:
    """The style of a file: `separator` between name and value; `indent_width` None: as the section's other settings have it."""

    separator: str = " = "
    prefix: str = "["
    suffix: str = "]"
    indent_char: str = " "
    indent_width: int | None = None


@dataclass(slots=True)
class Section:
    """One section: its own line (None for the lines above all sections) and the lines below it."""

    name: str
    header: str | None
    lines: list[str] = field(default_factory=list)


class IniText:
    """The sections of a file; the first holds the lines above all others, and is called ''."""

    def __init__(self, text: str, style: IniStyle | None = None) -> None:
        self.style = style or IniStyle()
        mark = " " if self.style.separator.isspace() else self.style.separator.strip()
        inside, between = f"[^\\s{re.escape(mark)}]", f"(\\s*{re.escape(mark)}[ \\t]*)"
        self._setting = re.compile(rf"(\s*)([^#;\s]|[^#;\s].*?{inside}){between}(.*)")
        self._commented = re.compile(rf"(\s*)[#;]++(\s*+)(.*?{inside}){between}(.*)")
        header = re.compile(rf"\s*{re.escape(self.style.prefix)}(.*){re.escape(self.style.suffix)}\s*")
        self.sections = [Section("", None)]
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        for line in lines:
            match = header.fullmatch(line)
            if match:
                self.sections.append(Section(match[1], line))
            else:
                self.sections[-1].lines.append(line)

    def __str__(self) -> str:
        lines: list[str] = []
        for section in self.sections:
            lines += [*([] if section.header is None else [section.header]), *section.lines]
        return "".join(f"{line}\n" for line in lines)

    # --- reading

    def has_section(self, name: str) -> bool:
        """Return whether there is such a section; '' always is."""
        return any(section.name == name for section in self.sections)

    def names(self, section: str) -> list[str]:
        """Return the settings of a section."""
        matches = (self._setting.fullmatch(line) for part in self._sections_named(section) for line in part.lines)
        return list(dict.fromkeys(match[2] for match in matches if match))

    def get(self, section: str, setting: str) -> str | None:
        """Return a setting's value; the last one counts. None: there is none."""
        value = None
        for part in self._sections_named(section):
            for line in part.lines:
                match = self._setting.fullmatch(line)
                if match and match[2] == setting:
                    value = match[4]
        return value

    def _sections_named(self, name: str) -> list[Section]:
        return [section for section in self.sections if section.name == name]

    # --- changing

    def set(self, section: str, setting: str, value: str) -> None:
        """Set a setting's value: at its line, or else below its commented-out line, or else at its section's end."""
        changed = False
        for part in self._sections_named(section):
            for number, line in enumerate(part.lines):
                match = self._setting.fullmatch(line)
                if match and match[2] == setting:
                    part.lines[number] = f"{match[1]}{match[2]}{match[3]}{value}"
                    changed = True
        if not changed:
            self._insert(self.add_section(section), setting, value)

    def _insert(self, section: Section, setting: str, value: str) -> None:
        new = f"{self._indentation(section)}{setting}{self.style.separator}{value}"
        for number, line in enumerate(section.lines):
            match = self._commented.fullmatch(line)
            if match and match[3] == setting:
                section.lines.insert(number + 1, new)
                return
        at = len(section.lines)
        while at and not section.lines[at - 1].strip():
            at -= 1
        fresh = not section.lines
        section.lines.insert(at, new)
        if fresh and section.header is None and len(self.sections) > 1:
            section.lines.append("")  # the first setting above all sections stands apart from them

    def _indentation(self, section: Section) -> str:
        width = self.style.indent_width
        if width is None:
            matches = filter(None, map(self._setting.fullmatch, section.lines))
            width = min((len(match[1]) for match in matches), default=0)
        return self.style.indent_char * width

    def add_section(self, name: str) -> Section:
        """Return the section of that name, new at the end if there is none."""
        sections = self._sections_named(name)
        if sections:
            return sections[0]
        if len(self.sections) > 1 or self.sections[0].lines:
            self.sections[-1].lines.append("")
        self.sections.append(Section(name, f"{self.style.prefix}{name}{self.style.suffix}"))
        return self.sections[-1]

    def remove(self, section: str, setting: str) -> None:
        """Remove a setting; a section that is empty then goes too."""
        for part in self._sections_named(section):
            remaining = [line for line in part.lines if not ((match := self._setting.fullmatch(line)) and match[2] == setting)]
            if remaining != part.lines:
                part.lines = remaining
                if not remaining and part.header is not None:
                    self.sections.remove(part)

    def remove_section(self, name: str) -> None:
        """Remove a section; ResourceError when it has settings."""
        if self.names(name):
            raise ResourceError(f"The section [{name}] still has settings: {', '.join(self.names(name))}")
        self.sections = [section for section in self.sections if section.name != name or section.header is None]
