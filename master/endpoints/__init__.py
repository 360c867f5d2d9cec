"""Puppet's HTTP interface: the application with both URL schemes, puppetserver's, the CA's and the service's endpoints."""
