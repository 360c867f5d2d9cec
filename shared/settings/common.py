"""The settings that master, agent and every other command have in common."""

from pathlib import Path
from typing import Literal

from .base import Settings
from .declarations import setting
from .values import Duration, Flag, Paths, Priority, Revocation, Size, Timeout, WarningKinds, Words


class CommonSettings(Settings):
    """Directories, names, certificates, logging, environments."""

    confdir: Path = setting(Path("/etc/puppet"), doc="Where the configuration is.")
    vardir: Path = setting(Path("/var/lib/puppet"), doc="The directory of all data that changes.")
    publicdir: Path = setting("$vardir/public", doc="Where files for everybody are; $vardir must let others pass, as a new one does.")
    logdir: Path = setting(Path("/var/log/puppet"), doc="Where log files go.")
    rundir: Path = setting(Path("/var/run/puppet"), doc="Where pid files go.")
    codedir: Path = setting("$confdir/code", doc="Where manifests, modules and data are.")
    statedir: Path = setting("$vardir/state", doc="The directory of the state of runs.")
    config_file_name: str = setting("puppet.conf", doc="The name of the configuration file.")
    config: Path = setting("$confdir/$config_file_name", doc="The configuration file.")
    route_file: Path = setting("$confdir/routes.yaml", doc="Which terminus and cache serve an indirection.")

    certname: str = setting("", doc="The name of this host's certificate: its full host name in lower case.")
    environment: str = setting("production", doc="The environment that is asked for.")
    environmentpath: Paths = setting("$codedir/environments", doc="Folders of environments, separated by colons.")
    basemodulepath: Paths = setting(
        "$codedir/modules", doc="Modules that every environment has; by default also those of Puppet's packages, where they are installed."
    )
    environment_timeout: Timeout = setting("0", doc="How long an environment is cached: 0, a duration, or unlimited.")
    default_manifest: str = setting("./manifests", doc="The main manifest of an environment that names none, below its folder.")
    disable_per_environment_manifest: Flag = setting(False, doc="Only default_manifest counts, which must be absolute then.")
    config_version: str = setting(
        "", doc="A program whose output is the version of a catalog; an option of a command only, else in environment.conf."
    )
    libdir: Path = setting("$vardir/lib", doc="The directory of plugins from the master.")
    factpath: Paths = setting("$vardir/lib/facter:$vardir/facts", doc="Folders of custom facts.")

    ssldir: Path = setting("$confdir/ssl", doc="Where keys and certificates are.")
    certdir: Path = setting("$ssldir/certs", doc="Certificates.")
    privatekeydir: Path = setting("$ssldir/private_keys", doc="Private keys.")
    publickeydir: Path = setting("$ssldir/public_keys", doc="Public keys.")
    requestdir: Path = setting("$ssldir/certificate_requests", doc="Requests that have been sent.")
    hostcert: Path = setting("$certdir/$certname.pem", doc="This host's certificate.")
    hostprivkey: Path = setting("$privatekeydir/$certname.pem", doc="This host's private key.")
    hostpubkey: Path = setting("$publickeydir/$certname.pem", doc="This host's public key.")
    hostcsr: Path = setting("$requestdir/$certname.pem", doc="This host's certificate request.")
    localcacert: Path = setting("$certdir/ca.pem", doc="The CA's certificates, as fetched.")
    hostcrl: Path = setting("$ssldir/crl.pem", doc="The CA's revocation lists, as fetched.")
    ssl_lockfile: Path = setting("$ssldir/ssl.lock", doc="Held while keys and certificates are made or fetched.")
    certificate_revocation: Revocation = setting("chain", doc="Check revocation of the whole chain, of the leaf, or not at all.")
    ssl_trust_store: str = setting(
        "", undefined=True, doc="A file of CAs that web servers may have besides the system's: of file sources, of reporturl."
    )
    csr_attributes: Path = setting("$confdir/csr_attributes.yaml", doc="Attributes and extensions for the certificate request.")
    trusted_oid_mapping_file: Path = setting(
        "$confdir/custom_trusted_oid_mapping.yaml", doc="Names of the site's own certificate extensions."
    )
    dns_alt_names: Words = setting((), doc="Alternative names to ask for in the certificate request.")
    keylength: int = setting(4096, ge=2048, le=16384, doc="Bits of a new RSA key.")
    key_type: Literal["rsa", "ec"] = setting("rsa", doc="The kind of a new key.")
    named_curve: str = setting("prime256v1", doc="The curve of a new EC key.")

    digest_algorithm: str = setting("sha256", doc="Checksums of files and in the filebucket.")
    bucketdir: Path = setting("$vardir/bucket", doc="The master's filebucket.")
    clientbucketdir: Path = setting("$vardir/clientbucket", doc="The local filebucket.")
    fileserverconfig: Path = setting("$confdir/fileserver.conf", doc="The file server's mounts.")
    filetimeout: Duration = setting(15, ge=0, doc="Seconds between two looks at a configuration file that may have changed.")

    log_level: Literal["debug", "info", "notice", "warning", "err", "alert", "emerg", "crit"] = setting(
        "notice", doc="The least level shown."
    )
    logdest: str = setting("", undefined=True, doc="Where logs go: console, syslog, journal, or files; a comma list.")
    syslogfacility: str = setting("daemon", doc="The facility of syslog messages.")
    color: str = setting("ansi", doc="ansi, or false; colour is only used on a terminal.")
    trace: Flag = setting(False, doc="Show where in the program an error came from.")
    verbose: Flag = setting(False, doc="Show info messages.")
    debug: Flag = setting(False, doc="Show debug messages.")
    priority: Priority = setting(
        "", undefined=True, doc="How much of the processor is asked for: high, normal, low, idle, or a number as nice takes it."
    )
    path: str = setting("none", doc="PATH for programs that agent and `puppet apply` start by name; none: as it is anyway.")
    profile: Flag = setting(False, doc="`puppet apply` and `puppet catalog compile` show which lines of manifests take the most time.")
    noop: Flag = setting(False, doc="Only report the changes that would be made.")
    show_diff: Flag = setting(False, doc="Show the differences of changed files.")
    diff: str = setting("diff", doc="The program that shows differences, by name or path; '' shows none.")
    diff_args: str = setting("-u", doc="Its arguments, separated by spaces.")
    strict: Literal["off", "warning", "error"] = setting(
        "warning", doc="How questionable code is treated: ignored, as a warning or as an error."
    )
    strict_variables: Flag = setting(False, doc="An unknown variable is an error.")
    strict_hostname_checking: Flag = setting(True, doc="Node blocks are found by a node's full name only, not by shortened ones.")
    disable_warnings: WarningKinds = setting((), doc="Warnings to leave out: deprecations, undefined_variables, undefined_resources.")
    hiera_config: str = setting("", doc="The site's own hiera.yaml; '' for that in codedir, or else in confdir.")
    data_binding_terminus: Literal["hiera", "none"] = setting("hiera", doc="Where a site's own data is; none: there is none.")
    tags: Words = setting((), doc="Only resources with one of these tags.")
    skip_tags: Words = setting((), doc="No resources with one of these tags.")
    node_terminus: str = setting("plain", doc="Where nodes come from: plain, exec, yaml, memory, ldap, or a plugin.")
    external_nodes: str = setting("none", doc="The program of the exec terminus for nodes, an absolute path with arguments.")
    facts_terminus: str = setting("", doc="Where facts come from; facter on an agent; on a master yaml, or what state names.")
    catalog_terminus: str = setting("compiler", doc="Where catalogs come from on a master.")
    catalog_cache_terminus: str = setting("", undefined=True, doc="The cache of catalogs: a terminus in which a master also stores them.")
    node_cache_terminus: str = setting(
        "",
        undefined=True,
        doc="The cache of nodes: a terminus in which a master also stores each run's node, for instance write_only_yaml.",
    )

    max_file_body: Size = setting("16MiB", gt=0, doc="Bytes of one metadata answer or other object held in memory.")
    pattern_timeout: Duration = setting(
        5, gt=0, doc="Seconds of processor time for one match of a regular expression of a manifest, of data or of a catalog."
    )
    command_timeout: Duration = setting(60, gt=0, doc="Seconds for an external program (classifier, autosign policy, fact).")
    command_output: Size = setting("16MiB", gt=0, doc="Bytes that an external program may print.")

    @property
    def site_hiera_config(self) -> Path:
        """The hiera.yaml of the site's own data, which need not exist."""
        if self.hiera_config:
            return Path(self.hiera_config)
        own = self.codedir / "hiera.yaml"
        return own if own.exists() else self.confdir / "hiera.yaml"
