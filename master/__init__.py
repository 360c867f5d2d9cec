"""The master: HTTP, authorization, termini, file server, CA service, compiler, reports."""
