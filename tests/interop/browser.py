"""
Looks at pages with Debian's Chromium. A script beside the clients: it reads what to look at, and prints what it saw, in JSON.

In: {"chromium": PATH, "folder": FOLDER, "base": URL, "visits": [{"name", "path", "until": [TEXT...], "drawings": [TEXT...], "fill",
"click", "press", "scheme", "picture"}]}. A visit opens a page, fills in fields, clicks and presses a key, by selectors, and waits until the
page shows all texts, and its drawings theirs. If it goes wrong, FOLDER/NAME.png shows the page. With a "scheme", light or dark, it also
looks for violations of WCAG 2.1 AA in these colours. With a "picture", a width and a height, the window has this size, and FOLDER/NAME.png
shows it. All visits have one tab: their paths differ.
Out: {NAME: {"status", "text", "drawn", "violations", "complaints"}}: the status of the page, what can be read on it and in its drawings,
with single blanks, the violations, and what went wrong: errors of scripts, of the console, and of whatever else the page asked for. What
pages ask of other servers is answered with nothing.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Error, Page, Request, sync_playwright

OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync"]
OPTIONS += ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
SHOWN = "texts => texts.every(text => (document.body?.innerText ?? '').replace(/\\s+/g, ' ').includes(text))"
DRAWN = "() => [...document.querySelectorAll('svg text')].map(each => each.textContent)"
ALL_DRAWN = f"texts => texts.every(text => ({DRAWN})().includes(text))"
VIOLATIONS = """async () => (await axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})).violations
  .flatMap(each => each.nodes.map(node => `${each.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`))"""
WINDOW = (1400, 900)
WITHIN = 30_000  # milliseconds for what a page shows later than itself, on a machine that is busy


def is_fault(request: Request) -> bool:
    """Whether a request failed by itself; those that a page still has under way end with it when a form is sent."""
    return request.failure != "net::ERR_ABORTED"


def look(page: Page, base: str, folder: Path, visit: dict, complaints: list) -> dict:
    complaints.clear()
    scheme, size = visit.get("scheme"), visit.get("picture")
    page.emulate_media(color_scheme=scheme or "light")
    page.set_viewport_size(dict(zip(("width", "height"), size or WINDOW, strict=True)))
    answer = page.goto(base + visit["path"], wait_until="load")
    try:
        for selector, text in visit["fill"].items():
            (page.select_option if selector.startswith("select") else page.fill)(selector, text)
        for selector in visit["click"]:
            page.click(selector)
        if press := visit.get("press"):
            page.press(*press)
        page.wait_for_function(SHOWN, arg=visit["until"])
        page.wait_for_function(ALL_DRAWN, arg=visit.get("drawings", []))
    except Error as error:
        complaints.append(str(error))
    if size or complaints:
        page.screenshot(path=folder / f"{visit['name']}.png", full_page=not size)
    text = " ".join(page.inner_text("body").split())
    seen = {"status": answer.status, "text": text, "drawn": page.evaluate(DRAWN), "complaints": list(complaints), "violations": []}
    if scheme:
        page.evaluate(AXE_SCRIPT)
        seen["violations"] = page.evaluate(VIOLATIONS)
    return seen


def main() -> None:
    asked = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=asked["chromium"], headless=True, args=OPTIONS, locale="en-US"
        )
        elsewhere = re.compile(f"^(?!{re.escape(asked['base'])}/)")
        context.route(elsewhere, lambda route: route.fulfill(status=200, content_type="text/css", body=""))
        page, complaints = context.pages[0], []
        page.set_default_timeout(WITHIN)
        page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
        page.on("console", lambda line: complaints.append(f"console: {line.text}") if line.type == "error" else None)
        page.on("requestfailed", lambda each: complaints.append(f"request: {each.url}: {each.failure}") if is_fault(each) else None)
        page.on("response", lambda answer: complaints.append(f"answer: {answer.status} {answer.url}") if answer.status >= 400 else None)
        seen = {visit["name"]: look(page, asked["base"], Path(asked["folder"]), visit, complaints) for visit in asked["visits"]}
        context.close()
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
