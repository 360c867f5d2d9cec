"""
The type system: each class has `instance(value)` and `assignable(other)`.

Not imported from here: `values.py` and the types need each other, so the modules are imported by name.
`parse.parse_type(text)`, `access.type_from_access(base, keys)`, `infer.infer(value)`, `infer.infer_set(value)`,
`merge.common_type(a, b)`, `describe.describe_mismatch(subject, expected, actual)`.
"""
