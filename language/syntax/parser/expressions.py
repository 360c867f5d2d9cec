"""Operators, accesses, calls and literals."""

from __future__ import annotations

from math import isinf

from ..nodes import (
    AccessExpression,
    ArrayLiteral,
    AttributeOperation,
    AttributeSplat,
    BinaryOperation,
    BooleanLiteral,
    CollectorExpression,
    ConcatenatedString,
    DefaultLiteral,
    FloatLiteral,
    FunctionCall,
    HashEntry,
    HashLiteral,
    HeredocExpression,
    IntegerLiteral,
    LambdaExpression,
    MethodCall,
    Nop,
    ParenthesizedExpression,
    QualifiedName,
    QualifiedReference,
    RegexpLiteral,
    RenderExpression,
    RenderText,
    ReservedWord,
    ResourceDefaultsExpression,
    ResourceExpression,
    ResourceOverrideExpression,
    SelectorEntry,
    SelectorExpression,
    StringLiteral,
    SyntaxNode,
    TextExpression,
    UnaryOperation,
    UndefLiteral,
    VariableExpression,
)
from .cursor import TokenCursor
from .statements import in_block

# Binding powers; a higher one binds tighter. Source: language reference 2.
POWER: dict[str, int] = {
    "or": 1,
    "and": 2,
    "?": 3,
    **dict.fromkeys((">=", ">", "<", "<="), 4),
    **dict.fromkeys(("!=", "=="), 5),
    **dict.fromkeys(("<<", ">>"), 6),
    **dict.fromkeys(("-", "+"), 7),
    **dict.fromkeys(("*", "/", "%"), 8),
    **dict.fromkeys(("=~", "!~"), 9),
    "in": 10,
}
_PREFIX: dict[str, int] = {"-": 11, "*": 12, "!": 13}
_DEFINING = frozenset(("class", "define", "node", "function", "type", "plan"))
_CONTROL = frozenset(("if", "unless", "case"))
_STRINGS = frozenset(("string", "word", "dqpre", "heredoc"))
_POSTFIX = frozenset((".", "[", "(", "<|", "<<|"))
_KEYWORD_VALUES = frozenset(("type", "function"))
_VALUE_ENDS = frozenset((",", "]", "}", "=>"))
_RESOURCES = (ResourceExpression, ResourceDefaultsExpression, ResourceOverrideExpression)
_NOT_EXPRESSIONS = frozenset(("=", "+=", "-=", "->", "~>", "<-", "<~"))


class ExpressionParser(TokenCursor):
    """The grammar of expressions, below assignments and resources."""

    def expression(self, above: int = 0) -> SyntaxNode:
        """
        expression = (PREFIX expression | primary postfix*) (OPERATOR expression | "?" selector)*

        Precedence climbing over POWER: only operators that bind tighter than `above` are taken. All are left-associative.
        """
        self.depth += 1
        if self.depth > self.max_depth:
            self.too_deep()
        kind = self.kind
        if kind in _PREFIX:
            at = self.at
            self.advance()
            operand = self.expression(_PREFIX[kind] - 1)
            left: SyntaxNode = UnaryOperation(at, operand.end, kind, operand)
        else:
            left = self.primary()
            if self.kind in _POSTFIX:
                left = self.postfix(left)
        if self.kind in POWER:
            left = self.operators(left, above)
        self.depth -= 1
        return left

    def operators(self, left: SyntaxNode, above: int) -> SyntaxNode:
        """Parse the operators behind an operand; see `expression`."""
        while True:
            kind = self.kind
            power = POWER.get(kind, 0)
            if power <= above:
                return left
            at = self.at
            self.advance()
            if kind == "?":
                left = self.selector(left)
                if self.kind in _POSTFIX:
                    left = self.postfix(left)
            else:
                right = self.expression(power)
                left = BinaryOperation(at, right.end, kind, left, right)

    def postfix(self, left: SyntaxNode) -> SyntaxNode:
        """
        postfix = "." (NAME | "type") ["(" [arguments] ")"] [lambda]     a method call
                | "[" keys "]"                                           no white space before the bracket
                | "(" [arguments [","]] ")" [lambda]                     not first on its line
                | "<|" [expression] "|>" ["{" attributes "}"] | "<<|" [expression] "|>>" ["{" attributes "}"]
        """
        while True:
            kind = self.kind
            if kind == ".":
                left = self.method(left)
            elif kind == "[":
                self.advance()
                keys = self.keys(trailing=True)
                self.take("]")
                left = AccessExpression(left.at, self.last_end, left, keys)
            elif kind == "(":
                self.advance()
                arguments = self.arguments(trailing=True)
                self.take(")")
                block = self.lambda_() if self.kind == "|" else None
                left = FunctionCall(left.at, self.last_end, left, arguments, block)
            elif kind in ("<|", "<<|"):
                left = self.collector(left)
            else:
                return left

    def method(self, receiver: SyntaxNode) -> SyntaxNode:
        """See `postfix`. The place is the parenthesis, or the dot when there is none."""
        at = self.at
        self.advance()
        if self.kind not in ("name", "type"):
            self.unexpected()
        name = self.text
        self.advance()
        arguments: tuple[SyntaxNode, ...] = ()
        if self.kind == "(":
            at = self.at
            self.advance()
            arguments = self.arguments(trailing=False)
            self.take(")")
        block: LambdaExpression | None = self.lambda_() if self.kind == "|" else None
        return MethodCall(at, self.last_end, receiver, name, arguments, block)

    def collector(self, type_: SyntaxNode) -> SyntaxNode:
        """See `postfix`. A brace behind it is always its overrides."""
        exported = self.kind == "<<|"
        closing = "|>>" if exported else "|>"
        self.advance()
        query = Nop(self.at, self.at) if self.kind == closing else self.expression()
        self.take(closing)
        attributes: tuple[AttributeOperation | AttributeSplat, ...] = ()
        if self.accept("{"):
            attributes = self.attributes()
            self.accept(",")
            self.take("}")
        return CollectorExpression(type_.at, self.last_end, type_, query, exported, attributes)

    def selector(self, left: SyntaxNode) -> SyntaxNode:
        """
        selector = "{" option ("," option)* [","] "}" | option
        option = expression "=>" expression
        """
        if self.kind != "?{":
            option = self.selector_entry()
            return SelectorExpression(left.at, option.end, left, (option,))
        self.advance()
        options = [self.selector_entry()]
        while self.accept(",") and self.kind != "}":
            options.append(self.selector_entry())
        self.take("}")
        return SelectorExpression(left.at, self.last_end, left, tuple(options))

    def selector_entry(self) -> SelectorEntry:
        match = self.expression()
        at = self.at
        self.take("=>")
        value = self.expression()
        return SelectorEntry(at, value.end, match, value)

    # --- lists ------------------------------------------------------------------------------------------------

    def arguments(self, *, trailing: bool) -> tuple[SyntaxNode, ...]:
        """arguments = argument ("," argument)* [","], up to `)`; argument = assignment ["=>" value]"""
        elements: list[SyntaxNode] = []
        paired = False
        if self.kind == ")":
            return ()
        while True:
            paired = self.element(elements, paired, alone=False)
            if not self.accept(",") or (trailing and self.kind == ")"):
                return tuple(elements)

    def keys(self, *, trailing: bool) -> tuple[SyntaxNode, ...]:
        """keys = key ("," key)* [","], up to `]`; key = expression | assignment "=>" value"""
        elements: list[SyntaxNode] = []
        paired = False
        while True:
            value = self.entry_value() if self.following() == "=>" else self.assignment()
            if self.kind == "=>":
                self.pair(elements, paired, value)
                paired = True
            else:
                if isinstance(value, _RESOURCES) or (isinstance(value, BinaryOperation) and value.op in _NOT_EXPRESSIONS):
                    self.unexpected()
                elements.append(value)
                paired = False
            if not self.accept(",") or (trailing and self.kind == "]"):
                return tuple(elements)

    def element(self, elements: list[SyntaxNode], paired: bool, *, alone: bool) -> bool:
        """
        Add an array element or argument; with `alone`, `type` and `function` may be used as names.

        `paired` and the answer: whether the one before, and this one, are written `key => value`.
        """
        if self.kind in _KEYWORD_VALUES and (self.following() == "=>" or (alone and self.following() in _VALUE_ENDS)):
            value: SyntaxNode = StringLiteral(self.at, self.token_end, self.text)
            self.advance()
        else:
            value = self.assignment()
        if self.kind == "=>":
            self.pair(elements, paired, value)
            return True
        elements.append(value)
        return False

    def pair(self, elements: list[SyntaxNode], paired: bool, key: SyntaxNode) -> None:
        """Add a `key => value` without braces; neighbouring ones become one hash."""
        at = self.at
        self.advance()
        value = self.entry_value()
        entry = HashEntry(at, value.end, key, value)
        before = elements[-1] if paired else None
        if isinstance(before, HashLiteral):
            elements[-1] = HashLiteral(before.at, entry.end, (*before.entries, entry))
        else:
            elements.append(HashLiteral(at, entry.end, (entry,)))

    def entry_value(self) -> SyntaxNode:
        """value = assignment | "type" | "function" """
        if self.kind in _KEYWORD_VALUES and self.following() in _VALUE_ENDS:
            text = StringLiteral(self.at, self.token_end, self.text)
            self.advance()
            return text
        return self.assignment()

    def array(self) -> SyntaxNode:
        """array = "[" [element ("," element)* [","]] "]" """
        at = self.at
        self.advance()
        elements: list[SyntaxNode] = []
        paired = False
        while self.kind != "]":
            paired = self.element(elements, paired, alone=True)
            if not self.accept(","):
                break
        self.take("]")
        return ArrayLiteral(at, self.last_end, tuple(elements))

    def hash(self) -> SyntaxNode:
        """hash = "{" [entry ("," entry)* [","]] "}"; entry = value "=>" value"""
        at = self.at
        self.advance()
        return self.entries(at, None)

    def entries(self, at: int, key: SyntaxNode | None) -> SyntaxNode:
        """Parse the entries of a hash that opened at `at`, up to its end; `key` is the first key if it is read already."""
        entries: list[HashEntry] = []
        while key or self.kind != "}":
            self.hash_entry(entries, key or self.entry_value())
            key = None
            if not self.accept(","):
                break
        self.take("}")
        return HashLiteral(at, self.last_end, tuple(entries))

    def hash_entry(self, entries: list[HashEntry], key: SyntaxNode) -> None:
        at = self.at
        self.take("=>")
        value = self.entry_value()
        entries.append(HashEntry(at, value.end, key, value))

    # --- operands ---------------------------------------------------------------------------------------------

    def primary(self) -> SyntaxNode:
        """
        primary = VARIABLE | string | NAME | NUMBER | TYPE-NAME | array | hash | "(" assignment ")" | "true" | "false" | "undef"
                | "default" | REGEX | control | definition | "type" "(" … | reserved word | template text
        """
        kind, text, at, end = self.kind, self.text, self.at, self.token_end
        if kind == "variable":
            self.advance()
            return VariableExpression(at, end, text)
        if kind == "string" or kind == "word":
            self.advance()
            return StringLiteral(at, end, text)
        if kind == "name":
            self.advance()
            return QualifiedName(at, end, text)
        if kind == "ref":
            self.advance()
            return QualifiedReference(at, end, text)
        if kind in ("dqpre", "heredoc"):
            return self.quoted()
        if kind in ("[", " ["):
            return self.array()
        if kind == "{":
            return self.hash()
        if kind == "number":
            return self.number()
        if kind in ("(", " ("):
            self.advance()
            inner = self.assignment()
            self.take(")")
            return ParenthesizedExpression(at, self.last_end, inner)
        return self.rarer()

    def rarer(self) -> SyntaxNode:
        """Parse the rare operands of `primary`."""
        kind, text, at, end = self.kind, self.text, self.at, self.token_end
        if kind in _CONTROL:
            return self.control()
        if kind == "type" and self.following() == "(":
            self.advance()
            return QualifiedName(at, end, text)
        if kind in _DEFINING:
            return self.definition()
        if kind == "render=":
            return self.render()
        node: SyntaxNode
        if kind == "boolean":
            node = BooleanLiteral(at, end, text == "true")
        elif kind == "undef":
            node = UndefLiteral(at, end)
        elif kind == "default":
            node = DefaultLiteral(at, end)
        elif kind == "regex":
            node = RegexpLiteral(at, end, text)
        elif kind in ("attr", "private"):
            node = ReservedWord(at, end, text)
        elif kind == "render":
            node = RenderText(at, end, text)
        else:
            self.unexpected()
        self.advance()
        return node

    def number(self) -> SyntaxNode:
        """Parse a NUMBER token: octal with a leading 0, hexadecimal with 0x, a float with `.` or an exponent."""
        text, at, end = self.text, self.at, self.token_end
        node: SyntaxNode
        if text[:2] in ("0x", "0X"):
            node = IntegerLiteral(at, end, int(text, 16), 16)
        elif "." in text or "e" in text or "E" in text:
            value = float(text)
            if isinf(value):
                raise self.source.error(f"The number {text} is too large for a Float", at, hint="The largest is about 1.8e308.")
            node = FloatLiteral(at, end, value)
        elif text[0] == "0" and len(text) > 1:
            node = IntegerLiteral(at, end, int(text, 8), 8)
        elif len(text) > 4000:
            raise self.source.error("The number has too many digits", at)
        else:
            node = IntegerLiteral(at, end, int(text))
        self.advance()
        return node

    def quoted(self) -> SyntaxNode:
        """
        string = STRING | WORD | interpolated | "@(…)" (STRING | interpolated)
        interpolated = PRE assignment (MID assignment)* POST
        """
        kind, text, at = self.kind, self.text, self.at
        if kind == "heredoc":
            end = self.token_end
            self.advance()
            return HeredocExpression(at, end, text, self.quoted())
        if kind in ("string", "word"):
            self.advance()
            return StringLiteral(at, self.last_end, text)
        segments: list[SyntaxNode] = []
        while True:
            if text:
                segments.append(StringLiteral(self.at, self.token_end, text))
            self.advance()
            inner = self.assignment()
            segments.append(TextExpression(at, inner.end, inner))
            kind, text = self.kind, self.text
            if kind == "dqpost":
                if text:
                    segments.append(StringLiteral(self.at, self.token_end, text))
                self.advance()
                return ConcatenatedString(at, self.last_end, tuple(segments))
            if kind != "dqmid":
                self.unexpected()

    def render(self) -> SyntaxNode:
        """
        render = "<%=" (expression | "{" statements "}") "%>"

        What opens with a brace is a hash when `=>` follows the first expression in it, or when it is empty.
        """
        at = self.at
        self.advance()
        brace = self.at
        if self.kind != "{" or self.following() == "}":
            inner = self.expression()
        else:
            self.advance()
            first = self.entry_value()
            if self.kind == "=>":
                inner = self.operators(self.postfix(self.entries(brace, first)), 0)
            else:
                statements = self.statements(first)
                self.take("}")
                inner = in_block(statements, brace, self.last_end)
        if self.kind not in ("%>", "-%>"):
            self.unexpected()
        self.advance()
        return RenderExpression(at, self.last_end, inner)
