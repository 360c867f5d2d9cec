"""Plain data as text: JSON, YAML, HOCON, and Puppet's rich data."""
