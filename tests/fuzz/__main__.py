"""
`python -m tests.fuzz`: asks Debian's Puppet 7.23 and our compiler the same generated questions, and shows where the answers differ.

Ends with 0 when 99.8 % of what the reference compiles gives the identical catalog and log, and 98 % of all answers are equal but for
the wording that wordings.yaml lists; with 1 when not; with 2 when the reference is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.fuzz.campaign import Campaign
from tests.fuzz.comparison import Wordings, compare
from tests.fuzz.grammar import Grammar
from tests.fuzz.oracle import Reference, our_answer, reference_is_here, stdlib_folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topic", action="append", help="only this topic of grammar/topics.yaml; can be repeated")
    parser.add_argument("--shrink", type=int, default=30, metavar="N", help="cut down the first N classes of differences (30)")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1), help="processes of the reference")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there, too")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="ask the question of that number alone, and show both answers")
    parser.add_argument("--case", type=Path, metavar="FILE", help="ask the cases of a YAML file, or `-`, and show both answers")
    options = parser.parse_args()
    if not reference_is_here():
        print("There is no Puppet 7.23 here to ask: apt-get install puppet-agent", file=sys.stderr)
        return 2
    grammar = Grammar.load()
    modules = stdlib_folder()
    topics = tuple(topic for topic in grammar.topics if not options.topic or topic.name in options.topic)
    if modules is None:
        print("The reference has no stdlib, its topics are left out: sh tests/fuzz/stdlib.sh", file=sys.stderr)
        topics = tuple(topic for topic in topics if not topic.stdlib)
    if not topics:
        parser.error(f"there is no such topic; there are {', '.join(topic.name for topic in grammar.topics)}")
    with Reference(options.processes, modules) as reference:
        campaign = Campaign(reference, grammar, topics, options.seed, Wordings.load(), progress_printer(options.questions))
        if options.show is not None or options.case is not None:
            cases = [campaign.question(options.show).case()] if options.case is None else read_cases(options.case)
            return show(reference, cases, campaign.wordings)
        campaign.run(options.questions)
        campaign.shrink(options.shrink)
    if options.json is not None:
        options.json.write_text(json.dumps(campaign.data(), indent=1, ensure_ascii=False) + "\n")
    print(report(campaign))
    return 0 if campaign.figures.suffice else 1


def progress_printer(questions: int) -> Callable[[Campaign], None]:
    """A function that prints a line after every thousand questions at the most."""
    began = time.monotonic()

    def print_progress(campaign: Campaign) -> None:
        asked = campaign.figures.asked + campaign.unanswered
        if asked % 1000 == 0 or asked == questions:
            print(f"{time.monotonic() - began:5.0f} s  {campaign.figures}", flush=True)

    return print_progress


def read_cases(path: Path) -> list[dict[str, object]]:
    """Cases in the form of tests/conformance/language; a file that is no list is a manifest."""
    text = sys.stdin.read() if str(path) == "-" else path.read_text()
    content = yaml.safe_load(text) if path.suffix in (".yaml", ".yml") else None
    return content if isinstance(content, list) else [{"manifest": text}]


def show(reference: Reference, cases: list[dict[str, object]], wordings: Wordings) -> int:
    """Print the cases with both answers; 1 if one differs."""
    differences = 0
    for case, theirs in zip(cases, reference.answers(cases), strict=True):
        ours = our_answer(case)
        difference = compare(theirs, ours)
        rule = wordings.rule_for(theirs, ours)
        differences += difference is not None and rule is None
        print(case_text(case))
        if difference is None:
            print(f"--- equal\n{json.dumps(theirs, ensure_ascii=False)}\n")
            continue
        print(f"--- reference\n{json.dumps(theirs, ensure_ascii=False)}\n--- ours\n{json.dumps(ours, ensure_ascii=False)}")
        print(f"=== {difference.kind}: {difference.explanation}\n{f'listed: {rule.reason}' if rule else ''}\n")
    return min(differences, 1)


def report(campaign: Campaign) -> str:
    """The figures, and the differences by class with their shortest questions."""
    lines = [""]
    for cluster in campaign.largest():
        lines += [f"## {cluster.count} x {cluster.difference.kind} ({cluster.question.topic})", case_text(cluster.question.case())]
        lines += [f"--- {cluster.difference.explanation.strip()}", ""]
    lines += [f"{name:12} {figures}" for name, figures in sorted(campaign.by_topic.items())]
    if campaign.unanswered:
        lines.append(f"{campaign.unanswered} questions took the reference too long, and are not counted")
    verdict = "enough" if campaign.figures.suffice else "NOT enough"
    lines.append(f"{'all':12} {campaign.figures}: {verdict} (seed {campaign.seed})")
    return "\n".join(lines)


def case_text(case: dict[str, object]) -> str:
    """A case as a reader wants to see it."""
    lines = [str(case["manifest"])]
    files = case.get("files") or {}
    assert isinstance(files, dict)
    for path, text in files.items():
        lines += [f"# {path}:", str(text)]
    if case.get("settings"):
        lines.append(f"# settings: {case['settings']}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
