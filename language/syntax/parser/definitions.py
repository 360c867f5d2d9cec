"""Classes, defines, nodes, functions, plans, type aliases; parameters and lambdas."""

from __future__ import annotations

from dataclasses import replace

from ..nodes import (
    AccessExpression,
    ClassDefinition,
    DefaultLiteral,
    DefineDefinition,
    FunctionDefinition,
    HashEntry,
    HashLiteral,
    LambdaExpression,
    NodeDefinition,
    ParameterDeclaration,
    PlanDefinition,
    QualifiedName,
    QualifiedReference,
    RegexpLiteral,
    StringLiteral,
    SyntaxNode,
    TypeAliasDefinition,
)
from .cursor import TokenCursor


class DefinitionParser(TokenCursor):
    """The grammar of definitions. Each definition is also added to `definitions` when it ends."""

    def definition(self) -> SyntaxNode:
        """definition = class | define | node | function | plan | alias"""
        kind = self.kind
        self.deeper()
        if kind == "class":
            definition = self.class_()
        elif kind == "define":
            definition = self.define()
        elif kind == "node":
            definition = self.node()
        elif kind == "function":
            definition = self.function()
        elif kind == "plan":
            definition = self.plan()
        else:
            definition = self.alias()
        self.depth -= 1
        self.definitions.append(definition)
        return definition

    def class_(self) -> SyntaxNode:
        """class = "class" name [parameters] ["inherits" (name | "default")] body"""
        at = self.at
        self.advance()
        name = self.name()
        self.namespace.append(name)
        parameters = self.parameter_list()
        parent = None
        if self.accept("inherits"):
            parent = "default" if self.accept("default") else self.name()
        body = self.body(at)
        self.namespace.pop()
        return ClassDefinition(at, self.last_end, self.qualified(name), parameters, parent, body)

    def define(self) -> SyntaxNode:
        """define = "define" name [parameters] body"""
        at = self.at
        self.advance()
        name = self.name()
        parameters = self.parameter_list()
        body = self.body(at)
        return DefineDefinition(at, self.last_end, self.qualified(name), parameters, body)

    def function(self) -> SyntaxNode:
        """function = "function" name [parameters] [returns] body"""
        at = self.at
        self.advance()
        name = self.name()
        parameters = self.parameter_list()
        returns = self.returns()
        body = self.body(at)
        return FunctionDefinition(at, self.last_end, name, parameters, body, returns)

    def plan(self) -> SyntaxNode:
        """plan = "plan" name [parameters] body"""
        at = self.at
        self.advance()
        name = self.name()
        self.namespace.append(name)
        parameters = self.parameter_list()
        body = self.body(at)
        self.namespace.pop()
        return PlanDefinition(at, self.last_end, self.qualified(name), parameters, body)

    def node(self) -> SyntaxNode:
        """
        node = "node" host ("," host)* [","] ["inherits" host] body
        host = (NAME | NUMBER) ("." (NAME | NUMBER))* | string | "default" | REGEX
        """
        at = self.at
        self.advance()
        matches = [self.host()]
        while self.accept(","):
            if self.kind in ("{", "inherits"):
                break
            matches.append(self.host())
        parent = self.host() if self.accept("inherits") else None
        body = self.body(at)
        return NodeDefinition(at, self.last_end, tuple(matches), parent, body)

    def host(self) -> SyntaxNode:
        """See `node`."""
        kind, text, at, end = self.kind, self.text, self.at, self.token_end
        if kind in ("string", "word", "dqpre", "heredoc"):
            return self.quoted()
        if kind == "default":
            self.advance()
            return DefaultLiteral(at, end)
        if kind == "regex":
            self.advance()
            return RegexpLiteral(at, end, text)
        if kind not in ("name", "number"):
            self.unexpected()
        self.advance()
        while self.accept("."):
            if self.kind not in ("name", "number"):
                self.unexpected()
            text += "." + self.text
            self.advance()
        return StringLiteral(at, self.last_end, text)

    def alias(self) -> SyntaxNode:
        """
        alias = "type" TYPE-NAME "=" (TYPE-NAME ["[" keys [","] "]" | hash] | hash | array)

        The place is the name's. `= {…}` is short for `Object[{…}]`; `= Parent {…}` for an Object of that parent.
        """
        at = self.at
        self.advance()
        name, named_at = self.text, self.at
        named = self.type_()
        if self.kind in ("{", "inherits") and not isinstance(named, AccessExpression):
            raise self.source.error(
                "Expressions of type a Type Definition are not supported in this version of Puppet", at, hint=f"Write type {name} = …"
            )
        self.take("=")
        if isinstance(named, AccessExpression):
            raise self.source.error("Expressions of type a Type Mapping are not supported in this version of Puppet", at)
        if self.kind == "ref":
            type_ = self.type_(trailing=True)
            if isinstance(type_, AccessExpression):
                type_ = replace(type_, at=named_at)
            if self.kind == "{" and isinstance(type_, QualifiedReference):
                type_ = _object(type_, self.hash(), named_at)
        elif self.kind == "{":
            hash_ = self.hash()
            type_ = AccessExpression(named_at, hash_.end, QualifiedReference(named_at, named_at, "Object"), (hash_,))
        elif self.kind in ("[", " ["):
            type_ = self.array()
        else:
            self.unexpected()
        return TypeAliasDefinition(named_at, self.last_end, name, type_)

    # --- parts ------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """name = NAME | WORD | TYPE-NAME; the checker knows which of them are good"""
        kind, text = self.kind, self.text
        if kind == "class":
            raise self.source.error("'class' keyword not allowed at this location", self.at)
        if kind == "string":
            raise self.source.error("A quoted string is not valid as a name here", self.at)
        if kind not in ("name", "word", "ref"):
            self.unexpected()
        self.advance()
        return text

    def qualified(self, name: str) -> str:
        """Return the name with the names of the enclosing classes in front."""
        return "::".join((*self.namespace, name)) if self.namespace else name

    def body(self, at: int) -> SyntaxNode:
        """body = "{" [statements] "}" """
        self.take("{")
        statements = [] if self.kind == "}" else self.statements()
        block = self.block(statements, at)
        self.take("}")
        return block

    def parameter_list(self) -> tuple[ParameterDeclaration, ...]:
        """Return the parameters in parentheses; an empty tuple when there are no parentheses."""
        if self.kind not in ("(", " ("):
            return ()
        self.advance()
        return self.parameters(")")

    def parameters(self, close: str) -> tuple[ParameterDeclaration, ...]:
        """parameters = [parameter ("," parameter)* [","]], and the closing token"""
        parameters: list[ParameterDeclaration] = []
        while self.kind != close:
            parameters.append(self.parameter())
            if not self.accept(","):
                break
        self.take(close)
        return tuple(parameters)

    def parameter(self) -> ParameterDeclaration:
        """parameter = [type] ["*"] VARIABLE ["=" expression]; the place is the variable's"""
        type_ = self.type_() if self.kind == "ref" else None
        splat = self.accept("*")
        name, at = self.text, self.at
        self.take("variable")
        default = self.expression() if self.accept("=") else None
        return ParameterDeclaration(at, self.last_end, name, type_, default, splat)

    def type_(self, *, trailing: bool = False) -> SyntaxNode:
        """type = TYPE-NAME ["[" keys "]"]"""
        type_: SyntaxNode = QualifiedReference(self.at, self.token_end, self.text)
        self.take("ref")
        if self.accept("["):
            keys = self.keys(trailing=trailing)
            self.take("]")
            type_ = AccessExpression(type_.at, self.last_end, type_, keys)
        return type_

    def returns(self) -> SyntaxNode | None:
        """returns = ">>" type"""
        return self.type_() if self.accept(">>") else None

    def lambda_(self) -> LambdaExpression:
        """lambda = "|" parameters "|" [returns] body"""
        at = self.at
        self.deeper()
        self.advance()
        parameters = self.parameters("|")
        returns = self.returns()
        body = self.body(at)
        self.depth -= 1
        return LambdaExpression(at, self.last_end, parameters, body, returns)


def _object(parent: QualifiedReference, hash_: SyntaxNode, at: int) -> SyntaxNode:
    """Return the Object type that `Parent {…}` represents."""
    assert isinstance(hash_, HashLiteral)
    if parent.value in ("Object", "TypeSet"):
        return AccessExpression(at, hash_.end, parent, (hash_,))
    entry = HashEntry(hash_.at, parent.end, QualifiedName(hash_.at, hash_.at, "parent"), parent)
    return AccessExpression(
        at, hash_.end, QualifiedReference(at, at, "Object"), (HashLiteral(hash_.at, hash_.end, (*hash_.entries, entry)),)
    )
