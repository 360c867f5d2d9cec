"""Deployments: a commit of a control repository becomes a version of an environment, seen whole or not at all."""
