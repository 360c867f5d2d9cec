"""Of the module mongodb: a password's digest."""

import hashlib

from master.compiler.functions import Context, function


@function("mongodb_password", "String user", "String password")
def mongodb_password(context: Context, user: str, password: str) -> str:
    return hashlib.md5(f"{user}:mongo:{password}".encode(), usedforsecurity=False).hexdigest()
