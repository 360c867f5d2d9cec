"""Bodies as Puppet 3.8.7 writes them: an agent's reports, a master's answers. Source: protocol reference 2.5, 3.13, 12."""

from __future__ import annotations

import json

from tests.support.pair import NAME

UUID = "0b6f6f6e-3c1d-4d8e-9d0a-1f2e3d4c5b6a"

PSON_REPORT = json.dumps(
    {
        "host": NAME,
        "time": "2026-11-20T21:48:31.123456789+00:00",
        "configuration_version": 1795213844,
        "transaction_uuid": UUID,
        "report_format": 4,
        "puppet_version": "3.8.7",
        "kind": "apply",
        "status": "changed",
        "environment": "production",
        "logs": [
            {"level": "notice", "message": "Finished catalog run in 0.10 seconds", "source": "Puppet", "tags": ["notice"],
             "time": "2026-11-20T21:48:31.200000000+00:00", "file": None, "line": None},
        ],
        "metrics": {"resources": {"name": "resources", "label": "Resources", "values": [["total", "Total", 20]]}},
        "resource_statuses": {
            "File[/srv/a]": {
                "title": "/srv/a", "file": "/m/init.pp", "line": 4, "resource": "File[/srv/a]", "resource_type": "File",
                "containment_path": ["Stage[main]", "Main", "File[/srv/a]"], "evaluation_time": 0.06, "tags": ["file"],
                "time": "2026-11-20T21:48:31.150000000+00:00", "failed": False, "changed": True, "out_of_sync": True, "skipped": False,
                "change_count": 1, "out_of_sync_count": 1,
                "events": [
                    {"audited": False, "property": "ensure", "previous_value": "absent", "desired_value": "file", "historical_value": None,
                     "message": "defined content as '{md5}d19f7ae40de729f92bf9aea2657d1c77'", "name": "file_created", "status": "success",
                     "time": "2026-11-20T21:48:31.160000000+00:00"},
                ],
            },
        },
    },
    separators=(",", ":"),
)  # fmt: skip

# As 3.8's own YAML writer has it: a blank behind the dashes, two blanks before the first key, symbols by tag, an alias for a repeated text.
YAML_REPORT = f"""--- !ruby/object:Puppet::Transaction::Report
  metrics: 
    resources: !ruby/object:Puppet::Util::Metric
      name: resources
      label: Resources
      values: 
        - - total
          - Total
          - 20
  logs: 
    - !ruby/object:Puppet::Util::Log
      level: !ruby/sym notice
      tags: 
        - notice
      message: Finished catalog run in 0.10 seconds
      source: Puppet
      time: 2026-11-20 21:48:31.200000 +00:00
  resource_statuses: 
    "File[/srv/a]": !ruby/object:Puppet::Resource::Status
      resource: "File[/srv/a]"
      file: /m/init.pp
      line: 4
      evaluation_time: 0.06
      change_count: 1
      out_of_sync_count: 1
      tags: 
        - file
      time: 2026-11-20 21:48:31.150000 +00:00
      events: 
        - !ruby/object:Puppet::Transaction::Event
          audited: false
          property: ensure
          previous_value: !ruby/sym absent
          desired_value: !ruby/sym file
          historical_value: 
          message: "defined content as '{{md5}}d19f7ae40de729f92bf9aea2657d1c77'"
          name: !ruby/sym file_created
          status: success
          time: 2026-11-20 21:48:31.160000 +00:00
      out_of_sync: true
      changed: true
      resource_type: File
      title: /srv/a
      skipped: false
      failed: false
      containment_path: 
        - Stage[main]
        - Main
        - "File[/srv/a]"
  host: {NAME}
  time: 2026-11-20 21:48:31.123456 +00:00
  kind: apply
  report_format: 4
  puppet_version: "3.8.7"
  configuration_version: 1795213844
  transaction_uuid: "{UUID}"
  environment: production
  status: changed
"""  # noqa: W291

# `AGENT` and `TARGET` stand for the agent's name and the file.
CATALOG = (
    '{"document_type":"Catalog","data":{"tags":["settings","default","demo3","node","class"],"name":"AGENT","version":1795213844,'
    '"environment":"production","resources":[{"type":"Stage","title":"main","tags":["stage"],"exported":false,"parameters":{"name":"main"}},'
    '{"type":"Class","title":"Settings","tags":["class","settings"],"exported":false},'
    '{"type":"Class","title":"main","tags":["class"],"exported":false,"parameters":{"name":"main"}},'
    '{"type":"Node","title":"default","tags":["node","default","class"],"exported":false},'
    '{"type":"Class","title":"Demo3","tags":["class","demo3","node","default"],"file":"/m/init.pp","line":1,"exported":false},'
    '{"type":"File","title":"TARGET","tags":["file","class","demo3","node","default"],"file":"/m/init.pp","line":4,"exported":false,'
    '"parameters":{"ensure":"file","source":"puppet:///modules/demo3/a.txt","mode":"644"}}],'
    '"edges":[{"source":"Stage[main]","target":"Class[Settings]"},{"source":"Stage[main]","target":"Class[main]"},'
    '{"source":"Class[main]","target":"Node[default]"},{"source":"Stage[main]","target":"Class[Demo3]"},'
    '{"source":"Class[Demo3]","target":"File[TARGET]"}],"classes":["settings","default","demo3"]},"metadata":{"api_version":1}}'
)
NODE = '{"document_type":"Node","data":{"name":"AGENT","environment":"production","parameters":{"architecture":"amd64"}}}'
METADATA = (
    '{"document_type":"FileMetadata","data":{"path":"/e/modules/demo3/files/a.txt","relative_path":null,"links":"manage","owner":0,"group":0,'
    '"mode":420,"checksum":{"type":"md5","value":"{md5}5d41402abc4b2a76b9719d911017c592"},"type":"file","destination":null},'
    '"metadata":{"api_version":1}}'
)
ROOT = (
    '[{"document_type":"FileMetadata","data":{"path":"/e/lib","relative_path":".","links":"manage","owner":0,"group":0,"mode":493,'
    '"checksum":{"type":"ctime","value":"{ctime}2026-11-20 21:48:31 +0000"},"type":"directory","destination":null},'
    '"metadata":{"api_version":1}}]'
)
