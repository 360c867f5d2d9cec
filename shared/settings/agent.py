"""The agent's settings."""

from pathlib import Path
from typing import Any, Literal

from .common import CommonSettings
from .declarations import setting
from .values import ChecksumTypes, Ciphers, Duration, Flag, Headers, RubyFacts, Size, Ttl, Words


class AgentSettings(CommonSettings):
    """The settings of an agent, with its time limits."""

    node_name_value: str = setting("$certname", doc="The name that the master is asked about; auth.conf must allow it to the certificate.")
    node_name_fact: str = setting("", doc="The fact whose value is that name instead; '' for none.")
    server: str = setting("puppet", doc="Host name of the master.")
    masterport: int = setting(8140, ge=1, le=65535, doc="Port of the master.")
    server_list: Words = setting((), doc="Masters (host or host:port, separated by commas), of which the first that answers is used.")
    use_srv_records: Flag = setting(False, doc="Look in DNS first: _x-puppet._tcp.<domain>, _x-puppet-ca, -report and -fileserver.")
    srv_domain: str = setting("", undefined=True, doc="The domain of those records; '' for that of this host.")
    ca_server: str = setting("$server", doc="Host name of the CA.")
    ca_port: int = setting("$masterport", ge=1, le=65535, doc="Port of the CA.")
    report_server: str = setting("$server", doc="Host name that takes reports.")
    report_port: int = setting("$masterport", ge=1, le=65535, doc="Port that takes reports.")
    scheme: Literal["auto", "a", "b"] = setting("auto", doc="URL scheme: of 3.x (a), of 4 to 8 (b), or auto: ask the master.")

    onetime: Flag = setting(False, doc="Run once, then exit.")
    daemonize: Flag = setting(True, doc="Go to the background.")
    runinterval: Duration = setting("30m", ge=0, doc="Seconds between two runs.")
    splay: Flag = setting(False, doc="Wait a random time before the first run.")
    splaylimit: Duration = setting("$runinterval", ge=0, doc="The longest such wait, in seconds.")
    runtimeout: Duration = setting("1h", ge=0, doc="Seconds for a whole run; 0: no limit.")
    run_on_demand: Flag = setting(True, doc="Let a daemon hold a request to its master, so that `puppet run` can start a run at once.")
    waitforcert: Duration = setting("2m", ge=0, doc="Seconds between two requests for the certificate; 0: do not wait.")
    maxwaitforcert: Ttl = setting("unlimited", doc="Seconds after which waiting for the certificate ends.")
    waitforlock: Duration = setting(0, ge=0, doc="Seconds between two tries for the lock of a run; 0: do not wait.")
    maxwaitforlock: Ttl = setting("1m", doc="Seconds after which waiting for the lock ends.")
    ca_fingerprint: str = setting("", undefined=True, doc="SHA256 of the CA's certificates that must be met at first contact.")
    ca_refresh_interval: Duration = setting("1d", ge=0, doc="Seconds between two looks for new CA certificates; 0: never.")
    crl_refresh_interval: Duration = setting("1d", ge=0, doc="Seconds between two looks for a new revocation list; 0: never.")
    hostcert_renewal_interval: Duration = setting("30d", ge=0, doc="Seconds before its end at which the certificate is renewed; 0: never.")
    certificate_expire_warning: Duration = setting(
        "60d", ge=0, doc="Seconds before its end, but never more than a quarter of its time, at which a certificate is warned about."
    )

    usecacheonfailure: Flag = setting(True, doc="Apply the cached catalog when there is no new one.")
    use_cached_catalog: Flag = setting(False, doc="Apply the cached catalog and do not ask for a new one.")
    strict_environment_mode: Flag = setting(False, doc="Fail when the master assigns another environment.")
    use_last_environment: Flag = setting(True, doc="Begin in the environment that the last run ended in.")
    pluginsync: Flag = setting(True, doc="Fetch plugins and facts before the run.")
    ignore_plugin_errors: Flag = setting(False, doc="Go on without plugins that cannot be fetched, instead of the cached catalog or none.")
    pluginsource: str = setting("puppet:///plugins", doc="Where plugins come from.")
    pluginfactsource: str = setting("puppet:///pluginfacts", doc="Where external facts come from.")
    plugindest: Path = setting("$libdir", doc="Where plugins go.")
    pluginfactdest: Path = setting("$vardir/facts.d", doc="Where external facts go.")
    pluginsignore: str = setting(".svn CVS .git .hg", doc="Names that are not fetched.")
    disable_i18n: Flag = setting(True, doc="Do not fetch the modules' translations.")
    localesource: str = setting("puppet:///locales", doc="Where translations come from.")
    localedest: Path = setting("$vardir/locales", doc="Where translations go.")
    report: Flag = setting(True, doc="Send a report after a run.")
    report_serialization_format: Literal["pson", "yaml"] = setting("pson", doc="The form of reports for a 3.x master.")
    stringify_facts: Flag = setting(True, doc="Send facts to a 3.x master as text only.")
    fact_name_length_soft_limit: int = setting(2560, ge=0, doc="Bytes of a fact's name beyond which it is warned about; 0: never.")
    fact_value_length_soft_limit: int = setting(4096, ge=0, doc="Bytes of a fact's value beyond which it is warned about; 0: never.")
    top_level_facts_soft_limit: int = setting(512, ge=0, doc="Facts at the top beyond which a warning is given; 0: never.")
    number_of_facts_soft_limit: int = setting(2048, ge=0, doc="Facts and their parts beyond which a warning is given; 0: never.")
    payload_soft_limit: Size = setting("16MiB", ge=0, doc="Bytes of all facts, as sent, beyond which a warning is given; 0: never.")
    include_legacy_facts: Flag = setting(True, doc="Also send the flat names of structured facts.")
    resubmit_facts: Flag = setting(False, doc="Send the facts again after a run, with its changes.")
    exclude_unchanged_resources: Flag = setting(False, doc="Leave resources out of reports to which nothing happened.")
    write_catalog_summary: Flag = setting(True, doc="Write classfile and resourcefile in runs of the agent.")
    default_schedules: Flag = setting(True, doc="Have the schedules puppet, hourly, daily, weekly, monthly and never.")
    ignoreschedules: Flag = setting(False, doc="Take no notice of schedules.")
    supported_checksum_types: ChecksumTypes = setting(
        ("sha256", "sha384", "sha512", "sha224", "md5"), doc="Checksums that a static catalog may have for this agent, the best first."
    )
    preprocess_deferred: Flag = setting(
        True, doc="Call deferred functions before the first resource; otherwise each just before its resource is applied."
    )
    merge_dependency_warnings: Flag = setting(False, doc="Log a failed dependency of a class once, not for each resource in it.")
    ignoremissingtypes: Flag = setting(False, doc="Skip resources of unknown types.")
    prerun_command: str = setting("", doc="Command to run before a catalog is applied; if it fails, the run stops.")
    postrun_command: str = setting("", doc="Runs after a catalog was applied.")
    job_id: str = setting("", doc="The number of the job that started this run, for the master and the report.")
    detailed_exitcodes: Flag = setting(False, doc="Exit with 2 for changes, 4 for failures, 6 for both.")
    evaltrace: Flag = setting(False, doc="Show how long each resource took.")
    steps: Flag = setting(False, doc="Show each step of a run and how long it took.")
    summarize: Flag = setting(False, doc="Show a summary of the run.")
    graph: Flag = setting(False, doc="Write the graphs of a catalog as dot files.")
    graphdir: Path = setting("$statedir/graphs", doc="Where those go.")
    default_file_terminus: Literal["rest", "file_server"] = setting("rest", doc="What puppet: sources without a host mean.")

    lastrunfile: Path = setting("$publicdir/last_run_summary.yaml", doc="The summary of the last run, which monitoring reads.")
    lastrunreport: Path = setting("$statedir/last_run_report.yaml", doc="The report of the last run.")
    statefile: Path = setting("$statedir/state.yaml", doc="When each resource was checked and changed.")
    transactionstorefile: Path = setting("$statedir/transactionstore.yaml", doc="The values that were set, for corrective changes.")
    statettl: Ttl = setting("32d", doc="Seconds after which an entry of the state file is dropped.")
    classfile: Path = setting("$statedir/classes.txt", doc="The classes of the last catalog.")
    resourcefile: Path = setting("$statedir/resources.txt", doc="The resources of the last catalog.")
    agent_catalog_run_lockfile: Path = setting("$statedir/agent_catalog_run.lock", doc="The lock of a run.")
    agent_disabled_lockfile: Path = setting("$statedir/agent_disabled.lock", doc="While it is there, no run takes place.")
    pidfile: Path = setting("$rundir/agent.pid", doc="The daemon's process number.")
    client_datadir: Path = setting("$vardir/client_data", doc="The cached catalog.")
    clientyamldir: Path = setting("$vardir/client_yaml", doc="Caches in YAML.")

    ciphers: Ciphers = setting("", doc="Ciphers for TLS up to 1.2 to masters, as OpenSSL names them; '' for those of this system.")
    sourceaddress: str = setting(
        "", undefined=True, doc="The address of this host that connections to masters and web servers start from; empty: any."
    )
    http_user_agent: str = setting("", doc="The User-Agent header of requests; '' for the default.")
    http_extra_headers: Headers = setting((), secret=True, doc="Headers for all requests to masters, name:value, separated by commas.")
    http_connect_timeout: Duration = setting("2m", gt=0, doc="Seconds to connect.")
    http_read_timeout: Duration = setting("10m", gt=0, doc="Seconds between two pieces of an answer.")
    http_least_rate: Size = setting(
        512, ge=0, doc="Bytes a second that a server has to send of a body, over 30 seconds of waiting; 0: any."
    )
    http_body_timeout: Duration = setting("30m", ge=0, doc="Seconds that receiving one body may take in all; 0: no limit.")
    max_source_size: Size = setting("16GiB", gt=0, doc="Bytes of one file that a server may send, for a file's source or from a bucket.")
    http_keepalive_timeout: Duration = setting(
        4, ge=0, doc="Seconds before an idle connection is closed; must be below the master's own limit."
    )
    http_proxy_host: str = setting("none", doc="A proxy's host. HTTP_PROXY and its like in the environment do not count.")
    http_proxy_port: int = setting(3128, ge=1, le=65535, doc="A proxy's port.")
    http_proxy_user: str = setting("none", doc="A proxy's user.")
    http_proxy_password: str = setting("none", secret=True, doc="A proxy's password.")
    no_proxy: Words = setting(("localhost", "127.0.0.1"), doc="Hosts that are asked without the proxy.")
    http_retries: int = setting(10, ge=0, le=100, doc="Times that a server's Retry-After is obeyed for one request.")
    http_longest_wait: Duration = setting("5m", gt=0, doc="The longest wait that Retry-After can ask for, in seconds.")
    max_catalog_body: Size = setting("256MiB", gt=0, doc="Bytes of a catalog or list of metadata.")
    module_repository: str = setting("https://forgeapi.puppet.com", doc="The Forge that `puppet module` asks: a URL, https or http.")
    module_groups: str = setting("", undefined=True, doc="Further groups of modules to search on the Forge, joined by +.")
    forge_authorization: str = setting("", secret=True, doc="The Authorization header for the Forge.")
    module_answer: Size = setting("32MiB", gt=0, doc="Bytes of one answer of the Forge, but for archives.")
    module_releases: int = setting(5000, gt=0, doc="Releases of one module, or results of one search, that the Forge may name.")
    module_archive_size: Size = setting("64MiB", gt=0, doc="Bytes of one archive of a module.")
    module_unpacked_size: Size = setting("512MiB", gt=0, doc="Bytes of all that one such archive holds.")
    module_unpacked_ratio: int = setting(100, gt=0, doc="Times that an archive may grow when it is unpacked to more than 16 MiB.")
    module_files: int = setting(50_000, gt=0, doc="Files and folders in one such archive.")
    module_download_timeout: Duration = setting("10m", gt=0, doc="Seconds for one answer or archive of the Forge.")
    module_git_timeout: Duration = setting("10m", gt=0, doc="Seconds for one git command that fetches a module of a Puppetfile.")
    max_plugin_files: int = setting(50_000, gt=0, doc="The most files that plugin sync downloads.")
    ruby_facts: RubyFacts = setting("true", doc="Run facts that modules have in Ruby alone: true, false, or facter: by that program.")
    ruby: str = setting(
        "auto",
        doc="The program for types, providers and facts that modules have in Ruby; '' for none. auto: the system's or Puppet's, if any.",
    )
    ruby_timeout: Duration = setting(
        "1h", gt=0, doc="Seconds that Ruby may be silent while it reads or changes a resource, or finds out a fact."
    )
    ruby_answer: Size = setting("64MiB", gt=0, doc="Bytes of one answer of Ruby's, with all that it logs and asks before.")
    ruby_memory: Size = setting("1GiB", gt=0, doc="Bytes of memory that a Ruby process may use; programs that it starts are not counted.")
    fact_timeout: Duration = setting(30, gt=0, doc="Seconds for one core fact.")
    external_fact_timeout: Duration = setting(
        "5m", gt=0, doc="Seconds for one program that prints external facts, and for one fact in Ruby."
    )
    external_fact_output: Size = setting("1MiB", gt=0, doc="Bytes that such a program may print, or facts in Ruby may log.")
    report_timeout: Duration = setting("2m", gt=0, doc="Seconds for sending a report after the run.")

    @classmethod
    def relate(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values; ValueError when two of them name the node."""
        if values["node_name_fact"] and values["node_name_value"] != values["certname"]:
            raise ValueError("node_name_fact and node_name_value cannot both be set")
        return values
