"""`puppet db export|import|move|status`: everything that a store or a PuppetDB holds as one file or in another database, and how it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import ConfigError
from shared.process.cli import flag, text
from shared.process.daemon import hear_hangups
from shared.settings import AgentSettings, MasterSettings

from ..faces import parse_face
from ..stores.options import SERVER_OPTIONS_HELP, StoreFaceOptions

HELP = f"""Usage: puppet db export FILE [--url URL]
       puppet db import FILE [--url URL]
       puppet db status [--json] [--url URL]
       puppet db move --from DATABASE --to DATABASE [--restart] [--json]
       puppet db [--no-daemonize] [--store DATABASE] [--SETTING VALUE ...]

export  writes everything that a store or a PuppetDB holds to FILE, a .tgz as PuppetDB's own export makes it: facts, catalogs, catalog
        inputs, reports, expirations, and which nodes are deactivated. It asks the query API, node by node, so that it also works where
        PuppetDB's own export does not (that of Debian 12 leaves out the data). FILE must not exist; `-` is standard output.
import  submits all that is in such a FILE (`-` is standard input). What is there already changes nothing, and what is newer stays: an
        import that was interrupted can be repeated.
status  prints whether the server runs, with which PuppetDB it is compatible, and how many commands wait.
move    copies all that a store keeps from one database to another, compares them, and says which setting to change. DATABASE is sqlite,
        for the file in store_dir, sqlite:///PATH or postgresql://USER@HOST/DATABASE. No store may run on either of them. A move that was
        interrupted goes on when it is called again; --restart empties a target that an earlier one has begun to fill.

Without an action it is the store itself that runs: over TLS on port 8081 (--store_port), and at a Unix socket for its own user. A master
with 'store = sqlite' runs one of its own; this one is for several masters, or beside one. They name it in puppetdb.conf, as they would
name a PuppetDB. --store is sqlite (the default) or postgresql://USER@HOST/DATABASE; --store_plain_port PORT listens without TLS as well,
on 127.0.0.1, where everybody may read and change everything; --store_allowlist FILE has the certnames, one a line, that alone may use it
over TLS. --no-daemonize, --verbose, --debug and --logdest are those of 'puppet master'. TERM ends it when the requests under way have
their answers; the commands that it has acknowledged wait on the disk. HUP has it read certificates and the list of certnames anew.

{SERVER_OPTIONS_HELP}

Exit codes: 0; 1 when the server cannot be reached or refuses, or the file cannot be read or written; status: 1 unless it runs;
import: 1 when files of the archive were refused, which are all listed; a store: 0 ended as asked, 1 could not start, 39 could not change to
the user, 70 a part that it cannot do without failed again and again."""


@dataclass(frozen=True, slots=True)
class DbOptions(StoreFaceOptions):
    """The command line of `puppet db`."""

    face = "db"

    from_: str = text()
    to: str = text()
    restart: bool = flag()


_OPTIONS = {"from_": "move", "to": "move", "restart": "move"}
"""The options that belong to one action alone."""


def main(argv: Sequence[str]) -> int:
    """Run `puppet db …`; the exit code. Without an action the store itself runs."""
    options, flags = parse_face(DbOptions, argv, AgentSettings, MasterSettings)
    if options.help:
        print(HELP)
        return 0
    if not options.arguments:
        from store.cli import main as run_store

        return run_store(argv)
    hear_hangups()
    _check_options(options)
    if options.action == "move":
        from .db_move import move  # with SQLAlchemy, which asks for 15 MB and 0.2 s

        options.exactly(0)
        return move(options.from_, options.to, flags, restart=options.restart, as_json=options.as_json)
    from ..stores.servers import servers_of  # with what TLS takes, 10 MB, which a store on a socket does without
    from .db_archives import ACTIONS

    action = ACTIONS.get(options.action)
    if action is None:
        raise options.unknown_action([*ACTIONS, "move"])
    options.exactly(0 if options.action == "status" else 1)
    return action(options, servers_of(options, flags))


def _check_options(options: DbOptions) -> None:
    """Raise ConfigError for an option that belongs to another action."""
    for attribute, action in _OPTIONS.items():
        if getattr(options, attribute) and options.action != action:
            name = attribute.rstrip("_")
            raise ConfigError(f"puppet db {options.action} does not take --{name}", hint=f"That is an option of 'puppet db {action}'.")
