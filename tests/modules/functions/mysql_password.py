"""Of the module mysql: a password's hash as MySQL stores it."""

import hashlib

from master.compiler.functions import Context, function


@function("mysql_password", "String password")
def mysql_password(context: Context, password: str) -> str:
    if not password or (password.startswith("*") and len(password) == 41):
        return password
    inner = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(inner, usedforsecurity=False).hexdigest().upper()
