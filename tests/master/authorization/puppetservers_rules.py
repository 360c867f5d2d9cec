"""Rules in puppetserver's form and what they say to whom: held against ours, and in tests/interop against puppetserver's own."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asking:
    """Who asks; `name` '' is a stranger."""

    name: str = "web1.example.com"
    extensions: dict[str, str] = field(default_factory=dict)
    dns: tuple[str, ...] = ()


WEB = Asking()
OTHER = Asking("db1.other.org")
STRANGER = Asking("")
ADMIN = Asking("ca.example.com", {"pp_cli_auth": "true"})
ALIAS = Asking("opaque", dns=("opaque", "www.example.com"))

# A file that has one of everything.
RULES = r"""
# Who may do what; a comment in front of everything.
authorization: {
    version: 1
    allow-header-cert-info: false
    rules: [
        { match-request: { path: "/", type: path }, deny: "*", sort-order: 999, name: "rest" }
        { match-request: { path: "^/puppet/v3/catalog/([^/]+)$", type: regex, method: [get, post] }
          allow: ["$1", admin.example.com], sort-order: 500, name: "own catalog" }
        { match-request: { path: "^/puppet/v3/node/(\\w+)[.](.+)$", type: regex, method: GET }
          allow: "$1.$2", sort-order: 500, name: "own node" }
        { match-request: { path: "/open", type: path }, allow-unauthenticated: true, sort-order: 500, name: "open" }
        { match-request: { path: "/named/all", type: path }, allow: "*", sort-order: 500, name: "all" }
        { match-request: { path: "/named/domain", type: path }, allow: "*.example.com", sort-order: 500, name: "domain" }
        { match-request: { path: "/named/word", type: path }, allow: opaque, sort-order: 500, name: "word" }
        { match-request: { path: "/named/regex", type: path }, allow: "/^web\\d+\\./", sort-order: 500, name: "regex" }
        { match-request: { path: "/named/map", type: path }, allow: { certname: WEB1.example.com }, sort-order: 500, name: "map" }
        { match-request: { path: "/mixed", type: path }, allow: ["*"], deny: web1.example.com, sort-order: 500, name: "deny first" }
        { match-request: { path: "/extended", type: path }
          allow: [{ extensions: { pp_role: [web, proxy], "1.3.6.1.4.1.34380.1.1.5": "c7" } }, { extensions: { pp_cli_auth: "true" } }]
          deny: { extensions: { pp_role: banned } }, sort-order: 500, name: "extended" }
        { match-request: { path: "/aliased", type: path }
          allow: { extensions: { subject-alt-name: { dns-name: [www.example.com, ftp.example.com] } } }, sort-order: 500, name: "aliased" }
        { match-request: { path: "/asked", type: path, query-params: { environment: [production, test], a: b } }
          allow: "*", sort-order: 500, name: "asked" }
        { match-request: { path: "/asked", type: path }, deny: "*", sort-order: 501, name: "asked otherwise" }
        { match-request: { path: "/order", type: path }, deny: "*", sort-order: 500, name: "b" }
        { match-request: { path: "/order", type: path }, allow: "*", sort-order: 500, name: "a" }
        { match-request: { path: "/order/later", type: path }, deny: "*", sort-order: 499, name: "z" }
        { match-request: { path: "/put", type: path, method: [put, delete] }, allow: "*", sort-order: 500, name: "put" }
    ]
}
"""

Parameters = dict[str, str | list[str]]
ROLE = {"pp_role": "web", "pp_cost_center": "c7"}

# method, URL, parameters, who, whether it is allowed
ASKED: list[tuple[str, str, Parameters, Asking, bool]] = [
    ("get", "/puppet/v3/catalog/web1.example.com", {}, WEB, True),
    ("post", "/puppet/v3/catalog/web1.example.com", {}, WEB, True),
    ("put", "/puppet/v3/catalog/web1.example.com", {}, WEB, False),
    ("get", "/puppet/v3/catalog/web1.example.com", {}, OTHER, False),
    ("get", "/puppet/v3/catalog/web1.example.com", {}, STRANGER, False),
    ("get", "/puppet/v3/catalog/web1.example.com", {}, Asking("admin.example.com"), True),
    ("get", "/puppet/v3/catalog/web1.example.com/x", {}, WEB, False),
    ("get", "/a/puppet/v3/catalog/web1.example.com", {}, WEB, False),
    ("get", "/puppet/v3/catalog/WEB1.example.com", {}, WEB, True),
    ("get", "/puppet/v3/node/web1.example.com", {}, WEB, True),
    ("get", "/puppet/v3/node/db1.other.org", {}, WEB, False),
    ("get", "/open", {}, STRANGER, True),
    ("put", "/open/x", {}, STRANGER, True),
    ("get", "/opener", {}, STRANGER, True),
    ("get", "/ope", {}, STRANGER, False),
    ("get", "/named/all", {}, WEB, True),
    ("get", "/named/all", {}, STRANGER, False),
    ("get", "/named/domain", {}, WEB, True),
    ("get", "/named/domain", {}, Asking("example.com"), True),
    ("get", "/named/domain", {}, Asking("badexample.com"), False),
    ("get", "/named/domain", {}, Asking("a.b.EXAMPLE.com"), True),
    ("get", "/named/domain", {}, OTHER, False),
    ("get", "/named/domain", {}, ALIAS, True),
    ("get", "/named/word", {}, ALIAS, True),
    ("get", "/named/word", {}, WEB, False),
    ("get", "/named/regex", {}, WEB, True),
    ("get", "/named/regex", {}, ALIAS, False),
    ("get", "/named/map", {}, WEB, True),
    ("get", "/mixed", {}, WEB, False),
    ("get", "/mixed", {}, OTHER, True),
    ("get", "/extended", {}, Asking(extensions=ROLE), True),
    ("get", "/extended", {}, Asking(extensions={**ROLE, "pp_role": "proxy"}), True),
    ("get", "/extended", {}, Asking(extensions={**ROLE, "pp_role": "db"}), False),
    ("get", "/extended", {}, Asking(extensions={"pp_role": "web"}), False),
    ("get", "/extended", {}, ADMIN, True),
    ("get", "/extended", {}, Asking(extensions={"pp_role": "banned", "pp_cli_auth": "true"}), False),
    ("get", "/extended", {}, WEB, False),
    ("get", "/aliased", {}, ALIAS, True),
    ("get", "/aliased", {}, WEB, False),
    ("get", "/aliased", {}, Asking(dns=("web1.example.com",)), False),
    ("get", "/asked", {"environment": "test", "a": "b"}, WEB, True),
    ("get", "/asked", {"environment": "test", "a": ["x", "b"]}, WEB, True),
    ("get", "/asked", {"environment": "test"}, WEB, False),
    ("get", "/asked", {"environment": "dev", "a": "b"}, WEB, False),
    ("get", "/order", {}, WEB, True),
    ("get", "/order/later", {}, WEB, False),
    ("put", "/put", {}, WEB, True),
    ("delete", "/put", {}, WEB, True),
    ("get", "/put", {}, WEB, False),
    ("head", "/puppet/v3/catalog/web1.example.com", {}, WEB, False),
    ("head", "/named/all", {}, WEB, True),
    ("get", "/elsewhere", {}, WEB, False),
]

# What puppetserver does not accept either: (a change of a good rule, part of our error).
GOOD = '{ match-request: { path: "/x", type: path }, allow: "*", sort-order: 500, name: "mine" }'
BAD: list[tuple[str, str, str]] = [
    ('name: "mine"', "x: 1", "The rule number 1: it has no 'name'"),
    ("sort-order: 500", "sort-order: 1000", "The rule 'mine': the sort-order is '1000', and has to be a number from 1 to 999"),
    ("sort-order: 500", "x: 1", "The rule 'mine': the sort-order is missing"),
    ('match-request: { path: "/x", type: path }', "x: 1", "The rule 'mine': it has no 'match-request'"),
    ('path: "/x"', "x: 1", "The rule 'mine': the path is missing"),
    ("type: path", "type: prefix", "The rule 'mine': the type is 'prefix', and has to be 'path' or 'regex'"),
    ('"/x", type: path', '"/(x", type: regex', "The rule 'mine': The regular expression '/(x' is not valid"),
    ("type: path", "type: path, method: patch", "The rule 'mine': the method is 'patch', and has to be one or more of get, post"),
    ("type: path", "type: path, query-params: [a]", "The rule 'mine': query-params is not a map"),
    ("type: path", "type: path, query-params: { a: 1 }", "The rule 'mine': the query-param 'a' is '1'"),
    ('allow: "*"', "x: 1", "The rule 'mine': it has no 'allow', 'deny' or 'allow-unauthenticated'"),
    ('allow: "*"', 'allow: "*", allow-unauthenticated: true', "The rule 'mine': allow-unauthenticated is combined with allow or deny"),
    ('"/x", type: path }, allow: "*"', '"/(x)", type: regex }, allow: "$2"', "The rule 'mine': '$2' means a group of the path"),
    ('allow: "*"', "allow: 5", "The rule 'mine': the 'allow' has '5', and takes a name or a map"),
    ('allow: "*"', "allow: { certname: a, extensions: { pp_role: b } }", "and takes a name or a map with either certname or extensions"),
    ('allow: "*"', "allow: { extensions: { pp_role: [{}] } }", "The rule 'mine': the extension 'pp_role' is '[{}]'"),
    ('allow: "*"', 'allow: "*bad"', "The rule 'mine': Invalid pattern *bad"),
]
