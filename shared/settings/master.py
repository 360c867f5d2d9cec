"""The master's and the CA's settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from .base import load
from .declarations import setting
from .store import SERVING_DEFAULTS, StatePlace, StoreSettings
from .values import Autosign, Duration, Flag, Paths, Size, Words


class MasterSettings(StoreSettings):
    """The settings of a master: its services, access rules and limits."""

    bindaddress: str = setting("0.0.0.0", doc="The address to listen on.")  # noqa: S104  # what a master is for
    masterport: int = setting(8140, ge=0, le=65535, doc="The port to listen on; 0: any free one.")
    metrics_port: int = setting(0, ge=0, le=65535, doc="The port for collectors of metrics (Prometheus), without TLS; 0: none.")
    metrics_bindaddress: str = setting("127.0.0.1", doc="The address for them.")
    accesslog: str = setting("", doc="Where each request is logged: off, or as logdest; '' for along with the rest, at level info.")
    log_queue: int = setting(
        10_000,
        gt=0,
        doc="The most pending lines of each log destination; further lines are dropped, so that a slow destination delays no request.",
    )
    auditlog: str = setting(
        "$logdir/audit.json", doc="The file in which each act of the CA and each refused request is a line; '' for none."
    )
    state: StatePlace = setting(
        "files",
        secret=True,
        doc="Where the master keeps certificates, nodes, facts, reports, the filebucket and what it knows of runs and deployments: files, "
        "or a database as postgresql://USER@HOST/DATABASE, which several masters share.",
    )
    state_queue: Path = setting(
        "$vardir/state_queue", doc="The directory of reports and files for the filebucket that wait for the database of the setting state."
    )
    state_queue_entries: int = setting(
        50_000, gt=0, doc="The most pending reports, and as many files; further ones get 503 with Retry-After."
    )
    state_queue_bytes: Size = setting("1GiB", gt=0, doc="The most bytes of the pending reports, and as many of the files.")
    state_report_ttl: Duration = setting(
        0, ge=0, doc="Seconds before reports are removed from the database of the setting state; 0: never."
    )
    pidfile: Path = setting("$rundir/master.pid", doc="The daemon's process number.")
    daemonize: Flag = setting(True, doc="Go to the background.")
    user: str = setting("puppet", doc="The user the master runs as when root starts it.")
    group: str = setting("puppet", doc="The group the master runs as when root starts it.")

    ca: Flag = setting(True, doc="Whether this master is the CA.")
    cadir: Path = setting("$ssldir/ca", doc="The CA's own folder; with state in a database: its key, and copies of its lists.")
    ca_name: str = setting("Puppet CA: $certname", doc="The common name of a new CA.")
    ca_key_passphrase: str = setting(
        "",
        doc="The file with the passphrase of the CA's key, such as a systemd credential; with state in a database the key is then there, "
        "encrypted, and not a file that is copied to each master. '' means private/ca.pass in cadir, if that exists.",
    )
    ca_ttl: Duration = setting("5y", gt=0, doc="Seconds that a certificate is valid.")
    autosign: Autosign = setting("$confdir/autosign.conf", doc="true, false, a file of names, or a program that decides.")
    allow_duplicate_certs: Flag = setting(False, doc="A new request may replace a certificate.")
    allow_subject_alt_names: Flag = setting(False, doc="Requests with alternative names may be signed.")
    allow_authorization_extensions: Flag = setting(False, doc="Requests with authorization extensions may be signed.")
    allow_auto_renewal: Flag = setting(True, doc="Agents may renew their certificate with it.")
    auto_renewal_cert_ttl: Duration = setting(
        "90d", gt=0, doc="Seconds that a certificate is valid whose agent renews it, from the first one on."
    )
    max_pending_requests: int = setting(10_000, gt=0, doc="The most pending certificate requests.")
    max_pending_bytes: Size = setting("64MiB", gt=0, doc="The most bytes of all pending certificate requests.")
    crl_ttl: Duration = setting("5y", gt=0, doc="Seconds that a revocation list is valid.")
    server: str = setting("puppet", doc="Host name by which agents find their master; a master uses it for ca_server only.")
    ca_server: str = setting("$server", doc="Host name of the CA, from which other masters fetch the revocation list.")
    ca_port: int = setting("$masterport", ge=0, le=65535, doc="Port of the CA.")
    crl_refresh_interval: Duration = setting(
        "5m", ge=0, doc="Seconds between two looks of a master that is no CA for a new revocation list; 0: never."
    )
    crl_refresh_timeout: Duration = setting(30, gt=0, doc="Seconds for one such look.")

    rest_authconfig: Path = setting("$confdir/auth.conf", doc="The file of access rules, in the form of Puppet 3.8 or of puppetserver.")
    ssl_client_header: str = setting("HTTP_X_CLIENT_DN", doc="The header with the client's name, behind a proxy.")
    ssl_client_verify_header: str = setting(
        "HTTP_X_CLIENT_VERIFY", doc="The header with the result of a proxy's verification of the client."
    )
    allow_header_cert_info: Flag = setting(False, doc="Accept the client's identity from a proxy's headers.")
    proxy_addresses: Words = setting((), doc="Addresses of proxies whose headers count; without any, none do.")

    storeconfigs: Flag = setting(
        False,
        doc="Keep facts and catalogs in the store or, without one, in the PuppetDB that puppetdb.conf names, so that resources can be "
        "exported and collected. A store switches it on.",
    )
    storeconfigs_backend: str = setting("puppetdb", doc="The backend of storeconfigs; only puppetdb is supported.")
    puppetdb_answer: Size = setting("64MiB", gt=0, doc="Bytes of one answer of a PuppetDB.")
    puppetdb_connections: int = setting(16, gt=0, doc="Connections to the servers of a PuppetDB at the same time; further requests wait.")

    reports: Words = setting(("store",), doc="What is done with reports: store, log, http, puppetdb, none. A store gets them in any case.")
    reportdir: Path = setting("$vardir/reports", doc="Where store puts reports.")
    report_queue: int = setting(
        300,
        gt=0,
        doc="The most reports that the processor store is writing or has pending; beyond that 503. Must be above max_active_requests.",
    )
    reporturl: str = setting("http://localhost:3000/reports/upload", doc="Where http sends reports.")
    report_include_system_store: Flag = setting(False, doc="The server of reporturl may have a certificate of any CA of the system.")
    yamldir: Path = setting("$vardir/yaml", doc="Nodes and facts in YAML.")
    server_datadir: Path = setting("$vardir/server_data", doc="Nodes, facts and catalogs in JSON.")
    code_cache: Path = setting("$vardir/code_cache", doc="Compiled manifests.")
    static_catalogs: Flag = setting(True, doc="Inline the metadata of files where an agent can use it.")
    rich_data: Flag = setting(
        True, doc="Send values of all types in catalogs to agents that can read them; environment.conf may override it."
    )
    environment_data_provider: Literal["", "none", "hiera", "function"] = setting(
        "", undefined=True, doc="Where an environment's data is that has no hiera.yaml; deprecated, and an environment.conf may differ."
    )
    code_id_command: str = setting("", doc="A program that prints the version of an environment's code.")
    code_content_command: str = setting("", doc="A program that prints a file of a version of an environment's code.")
    max_code_content: Size = setting("1GiB", gt=0, doc="Bytes of one file that code_content_command may print.")
    deploy_repository: str = setting("", secret=True, doc="The control repository of puppet deploy: a path, or an address of https or ssh.")
    deploy_keep: int = setting(5, ge=1, doc="The number of versions of an environment that puppet deploy stores.")
    deploy_keep_time: Duration = setting(
        "1h", ge=0, doc="Seconds after its replacement before a further version is removed, for runs that began with it."
    )
    deploy_path: str = setting(
        "/usr/local/bin:/opt/puppetlabs/puppet/bin:/opt/puppetlabs/bin:/usr/bin:/bin", doc="Where puppet deploy finds git, r10k and g10k."
    )
    deploy_timeout: Duration = setting("10m", gt=0, doc="Seconds for each program that puppet deploy starts.")
    deploy_hook_secret: str = setting(
        "", doc="A file with the secret of the control repository's web hook, which starts deployments; '' for no web hook."
    )
    deploy_hook_environments: Words = setting(
        (), doc="Environments that the web hook may deploy, with * and ? as in file names; none by default."
    )
    deploy_hook_queue: int = setting(20, gt=0, doc="The most pending deployments of the web hook; further ones get 503 with Retry-After.")
    max_hook_body: Size = setting("1MiB", gt=0, doc="Bytes of a call of the web hook.")
    trusted_external_command: str = setting(
        "", undefined=True, doc="A program that prints JSON for $trusted['external'] of a node, or a folder of them."
    )
    ldapserver: str = setting("ldap", doc="The LDAP server of the ldap node terminus.")
    ldapport: int = setting(389, ge=1, le=65535, doc="Its port.")
    ldapbase: str = setting("", doc="Where nodes are searched.")
    ldapuser: str = setting("", doc="Who searches.")
    ldappassword: str = setting("", secret=True, doc="That one's password.")
    ldapstring: str = setting("(&(objectclass=puppetClient)(cn=%s))", doc="The filter; %s is the node's name.")
    ldapclassattrs: Words = setting(("puppetclass",), doc="Attributes that name classes.")
    ldapparentattr: str = setting("parentnode", doc="The attribute that names a parent node.")
    ldapattrs: Words = setting(("all",), doc="Attributes that become variables; all: every one.")
    ldapstackedattrs: Words = setting(("puppetvar",), doc="Attributes that hold name=value, of a node and of its parents.")
    ldapssl: Flag = setting(False, doc="TLS from the first byte on to the LDAP server, whose certificate ldap.conf must trust.")
    ldaptls: Flag = setting(False, doc="TLS by StartTLS instead, on its usual port; the same holds.")

    compile_workers: int = setting(0, ge=0, le=256, doc="Processes that compile; 0: as many as there are processors.")
    compile_jobs: int = setting(10_000, ge=0, doc="Catalogs after which a compiling process is replaced by a new one; 0: never.")
    compile_timeout: Duration = setting("2m", gt=0, doc="Seconds for one catalog.")
    compile_memory: Size = setting("1GiB", gt=0, doc="Bytes of memory for one compiling process.")
    catalog_memo: Size = setting(
        "32MiB",
        ge=0,
        doc="Bytes of the catalog cache of each compiling process, from which unchanged nodes get their catalogs. 0: no cache.",
    )
    max_previews: int = setting(1, ge=0, doc="Previews over HTTP at the same time; beyond that 503 with Retry-After. 0: none.")
    preview_workers: int = setting(1, gt=0, doc="Processes of one preview over HTTP, of a lower priority than those for agents.")
    preview_records: Path = setting(
        "$vardir/preview", doc="The directory of dependency records: what each node's last catalog depended on."
    )
    preview_records_size: Size = setting(
        "256MiB", ge=0, doc="The most bytes of all dependency records; the oldest are removed. 0: no records."
    )
    parse_workers: int = setting(2, gt=0, le=64, doc="Processes that parse what peers send: YAML, and facts and reports that are large.")
    parse_time: Duration = setting(20, gt=0, doc="Seconds of processor time for parsing one message of a peer.")
    parse_memory: Size = setting("2GiB", gt=0, doc="Bytes of memory for one parsing process.")
    parse_queue: int = setting(200, gt=0, doc="The most messages being parsed or pending; further ones get 503 with Retry-After.")
    compile_queue: int = setting(500, gt=0, doc="The most pending catalogs; further ones get 503 with Retry-After.")
    compile_read_roots: Paths = setting((), doc="Folders of which manifests may read files by an absolute path; none: any.")
    compile_programs: Flag = setting(True, doc="Whether manifests may start programs, by generate.")
    ruby: str = setting(
        "auto",
        doc="The program for templates and functions of modules in Ruby; '' for none. auto: /usr/bin/ruby or /bin/ruby where there is one, "
        "but none where compile_programs or compile_read_roots restrict manifests, because these do not restrict Ruby.",
    )
    native_templates: Flag = setting(
        True,
        doc="Run ERB templates as Python where all of their Ruby can be translated exactly; false: Ruby runs all.",
    )
    ruby_timeout: Duration = setting("1m", gt=0, doc="Seconds that Ruby may be silent while a template or function runs.")
    ruby_answer: Size = setting("64MiB", gt=0, doc="Bytes of one template's text, or of one value that a function in Ruby gives.")
    max_request_body: Size = setting("64KiB", gt=0, doc="Bytes of a body, where no other limit is named.")
    max_facts_body: Size = setting("16MiB", gt=0, doc="Bytes of facts and of a catalog request.")
    max_report_body: Size = setting("64MiB", gt=0, doc="Bytes of a report.")
    max_bucket_body: Size = setting("1GiB", gt=0, doc="Bytes of one file for the filebucket.")
    bucket_quota: Size = setting("100GiB", gt=0, doc="Bytes of all files in the filebucket.")
    max_crl_body: Size = setting("64MiB", gt=0, doc="Bytes of revocation lists that are uploaded, or fetched from the CA.")
    max_header_bytes: Size = setting("32KiB", gt=0, doc="Bytes of all headers of a request.")
    max_header_line: Size = setting(8190, gt=0, doc="Bytes of a request line or of one header.")
    max_header_count: int = setting(100, gt=0, doc="Headers of a request.")
    max_active_requests: int = setting(
        256, gt=0, doc="Requests that are worked on at the same time; catalogs and reports beside them, as many each."
    )
    max_queued_requests: int = setting(5000, gt=0, doc="The most pending requests; further ones get 503 with a random Retry-After.")
    max_client_requests: int = setting(16, gt=0, doc="The most requests of one client, active and pending.")
    max_retry_delay: Duration = setting("30m", gt=0, doc="The longest Retry-After of a request that was turned away.")
    max_handshakes: int = setting(
        512, gt=0, doc="The most unfinished TLS handshakes; further connections wait to be accepted, and slow handshakes are cut off."
    )
    handshake_threads: int = setting(0, ge=0, le=256, doc="Threads that compute TLS handshakes; 0: half as many as there are processors.")
    max_connections: int = setting(5000, gt=0, doc="Connections at the same time.")
    handshake_timeout: Duration = setting(10, gt=0, doc="Seconds for a TLS handshake.")
    header_timeout: Duration = setting(15, gt=0, doc="Seconds to the end of a request's headers.")
    idle_timeout: Duration = setting(60, gt=0, doc="Seconds before an idle connection is closed; must be above the agents' own limit.")
    body_rate: Size = setting(1024, gt=0, doc="Bytes a second that a body must arrive at, after body_timeout.")
    body_timeout: Duration = setting(15, gt=0, doc="Seconds that a body may take whatever its rate.")
    close_timeout: Duration = setting(5, gt=0, doc="Seconds for the goodbye of a TLS connection.")
    compress_from: Size = setting(1024, ge=0, doc="Bytes from which on an answer is packed, when the client asks for it.")
    write_timeout: Duration = setting(60, gt=0, doc="Seconds that a client may not read its answer.")
    drain_timeout: Duration = setting(30, gt=0, doc="Seconds for requests under way when the master stops.")

    def place_of_state(self, files: str) -> str:
        """Return the name of an indirection's terminus: `postgresql` where masters share a database, or else the one named on files."""
        return files if self.state == "files" else "postgresql"

    @classmethod
    def relate(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values; a store gets facts and catalogs, and all reports."""
        if values["store"] == "none":
            return values
        reports = values["reports"]
        if "puppetdb" not in reports:
            reports = (*(name for name in reports if name != "none"), "puppetdb")
        return {**values, "storeconfigs": True, "reports": reports}


def settings_beside_master(flags: Mapping[str, Any]) -> MasterSettings:
    """
    Return the settings of a command that uses the data of the master on this host; its own store counts if it runs now. Blocks.

    `flags` are the settings of the command line. Raises as `load`.
    """
    settings = load(MasterSettings, section="master", flags=flags)
    if not settings.store_socket.exists():
        return settings
    return load(MasterSettings, section="master", flags=flags, application=SERVING_DEFAULTS)
