"""The Puppet Query Language: text to the syntax tree that PuppetDB's API takes as JSON, too."""
