"""The CA's directory: certificates, requests, serial numbers and the inventory."""
