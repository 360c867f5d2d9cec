"""The commands of PuppetDB's API: their submission, their payloads, and the interface of their writer."""
