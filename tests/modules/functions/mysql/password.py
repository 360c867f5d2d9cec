"""Of the module mysql: a password's hash as MySQL stores it."""

import hashlib

from master.compiler.functions import Context, function


@function("mysql::password", "String text")
def password(context: Context, text: str) -> str:
    if not text or (text.startswith("*") and len(text) == 41):
        return text
    inner = hashlib.sha1(text.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(inner, usedforsecurity=False).hexdigest().upper()
