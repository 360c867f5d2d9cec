"""
The type system: each class has `instance(value)` and `assignable(other)`.

Import from its modules: `notation.parse.parse_type(text)`, `notation.access.type_from_access(base, keys)`, `inference.infer.infer(value)`,
`inference.common.common_type(a, b)`, `descriptions.describe.describe_mismatch(subject, expected, actual)`.
"""
