"""Puppet's HTTP interface: both URL schemes, the CA's and the service's endpoints."""
