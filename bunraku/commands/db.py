"""Back up, restore and move a store or PuppetDB; show its status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError
from shared.process.cli import flag, text
from shared.process.command import CommandSpec
from shared.process.daemon import hear_hangups

from ..stores.options import SERVERS, StoreFaceOptions


@dataclass(frozen=True, slots=True)
class DbOptions(StoreFaceOptions):
    """The command line of `puppet db`."""

    from_: str = text("DATABASE", "move: the database to copy: sqlite, sqlite:///PATH or postgresql://USER@HOST/DATABASE")
    to: str = text("DATABASE", "move: the database to fill")
    restart: bool = flag("move: empty a target that an earlier move has begun to fill")


@CommandSpec(
    "db",
    DbOptions,
    usage=[
        "export FILE [--url URL]",
        "import FILE [--url URL]",
        "status [--json] [--url URL]",
        "move --from DATABASE --to DATABASE [--restart] [--json]",
        "[--no-daemonize] [--store DATABASE] [--SETTING VALUE ...]",
    ],
    actions={
        "export FILE": "write everything that a store or a PuppetDB holds to FILE, a .tgz as PuppetDB's own export makes it: facts, "
        "catalogs, catalog inputs, reports, expirations, and which nodes are deactivated. It asks the query API, node by node, so that "
        "it also works where PuppetDB's own export does not (that of Debian 12 leaves out the data). FILE must not exist; `-` is "
        "standard output",
        "import FILE": "submit the contents of such a FILE (`-` is standard input). It changes no data that are newer, so that an "
        "interrupted import can be repeated",
        "status": "print whether the server runs, with which PuppetDB it is compatible, and how many commands are pending",
        "move": "copy a store from one database to another, compare them, and print the setting to change. sqlite is the "
        "file in store_dir. No store may run on either of them. Repeat the command to continue an interrupted move",
    },
    setting_docs={
        "--store DATABASE": "the store's own database: sqlite (the default) or postgresql://USER@HOST/DATABASE",
        "--store_port PORT": "where the store listens with TLS; 8081 by default",
        "--store_plain_port PORT": "listen without TLS as well, on 127.0.0.1, where everybody may read and change everything",
        "--store_allowlist FILE": "lists the only certnames that may connect with TLS, one per line",
    },
    notes=f"""Without an action the store itself runs: over TLS, and at a Unix socket for its own user. A master with 'store = sqlite'
    runs one of its own; this one serves several masters. They name it in puppetdb.conf, like a PuppetDB.
    --no-daemonize, --verbose, --debug and --logdest are those of 'puppet master'. TERM ends it when pending requests are answered;
    acknowledged commands stay on the disk. HUP reloads certificates and the list of certnames.

    {SERVERS}

    Exit codes: 0; 1 when the server cannot be reached or refuses, or the file cannot be read or written; status: 1 unless it runs;
    import: 1 when files of the archive were refused, which are all listed; a store: 0 ended as asked, 1 could not start, 39 could not
    change to the user, 70 an essential part failed repeatedly.""",
).main
def main(options: DbOptions, flags: dict[str, Any]) -> int:
    """Run `puppet db …` and return the exit code. Without an action the store itself runs."""
    if not options.arguments:
        from store.cli import main as run_store

        return run_store(options.argv)
    hear_hangups()
    of_move = [name.rstrip("_") for name in ("from_", "to", "restart") if getattr(options, name)]
    if of_move and options.action != "move":
        raise ConfigError(f"puppet db {options.action} does not take --{of_move[0]}", hint="That is an option of 'puppet db move'.")
    if options.action == "move":
        from ..stores.moving import move  # with SQLAlchemy, which asks for 15 MB and 0.2 s

        options.exactly(0)
        return move(options.from_, options.to, flags, restart=options.restart, as_json=options.as_json)
    from ..stores.archives import ACTIONS
    from ..stores.servers import servers_of  # with what TLS takes, 10 MB, which a store on a socket does without

    action = ACTIONS.get(options.action)
    if action is None:
        raise options.unknown_action([*ACTIONS, "move"])
    options.exactly(0 if options.action == "status" else 1)
    return action(options, servers_of(options, flags))
