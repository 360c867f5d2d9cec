"""Resources: declarations, defaults, overrides, and the attributes of all of them."""

from __future__ import annotations

from dataclasses import replace

from ..lexer import KEYWORDS
from ..nodes import (
    AccessExpression,
    AttributeOperation,
    AttributeSplat,
    HashEntry,
    HashLiteral,
    Nop,
    QualifiedName,
    QualifiedReference,
    ResourceBody,
    ResourceDefaultsExpression,
    ResourceExpression,
    ResourceOverrideExpression,
    StringLiteral,
    SyntaxNode,
)
from .cursor import TokenCursor
from .statements import assemble_calls, in_block

_ATTRIBUTE_NAMES = (KEYWORDS - {"true", "false"}) | {"name", "plan"}
_ARROWS = frozenset(("=>", "+>"))
_NEVER_FIRST = frozenset(("and", "or", "in", "else", "elsif", "inherits"))  # of an expression


class ResourceParser(TokenCursor):
    """The grammar of resources, between relationships and expressions."""

    def resource(self) -> SyntaxNode:
        """
        resource = ("@" | "@@") resource
                 | "class" "{" bodies [";"] "}"
                 | expression ("{" (bodies [";"] | attributes [","]) "}")*

        The place of a resource and of its bodies is its type's first character, or its `@`.
        """
        kind = self.kind
        if kind == "@" or kind == "@@":
            return self.virtual()
        if kind == "class" and self.following() == "{":
            left: SyntaxNode = self.class_resource()
        else:
            left = self.expression()
        while self.kind == "{":
            left = self.resource_behind(left)
        return left

    def virtual(self) -> SyntaxNode:
        """Parse a resource that is marked virtual or exported."""
        form, at = self.kind, self.at
        self.deeper()
        self.advance()
        inner = self.resource()
        self.depth -= 1
        if isinstance(inner, ResourceExpression):
            bodies = tuple(replace(body, at=at) for body in inner.bodies)
            return replace(inner, at=at, form=form, bodies=bodies)
        if isinstance(inner, ResourceDefaultsExpression | ResourceOverrideExpression):
            return replace(inner, at=at, form=form)
        what = "Virtual (@)" if form == "@" else "Exported (@@)"
        raise self.source.error(f"{what} can only be applied to a Resource Expression", at)

    def class_resource(self) -> SyntaxNode:
        """Return `class { 'name': … }`"""
        at = self.at
        name = QualifiedName(at, self.token_end, "class")
        self.advance()
        self.advance()
        bodies = self.bodies(at)
        self.take("}")
        return ResourceExpression(at, self.last_end, "", name, bodies)

    def resource_behind(self, left: SyntaxNode) -> SyntaxNode:
        """Parse the `{` behind an expression: a resource, defaults or an override."""
        brace = self.at
        self.deeper()
        self.advance()
        if self.attributes_ahead():
            attributes = self.attributes()
            self.accept(",")
            self.take("}")
            resource = self.untitled(left, attributes, brace)
        else:
            bodies = self.bodies(left.at)
            self.take("}")
            resource = ResourceExpression(left.at, self.last_end, "", left, bodies)
        self.depth -= 1
        return resource

    def attributes_ahead(self) -> bool:
        """Return whether attributes follow, and not a title."""
        if self.kind in ("}", ","):
            return True
        if self.kind == "*":
            return self.following() == "=>"
        return self.kind in _NEVER_FIRST or (self.kind in _ATTRIBUTE_NAMES and self.following() in _ARROWS)

    def bodies(self, at: int) -> tuple[ResourceBody, ...]:
        """bodies = expression ":" attributes [","] (";" bodies)*, and a last `;`"""
        bodies = []
        while True:
            title = self.expression()
            self.take(":")
            attributes = self.attributes()
            self.accept(",")
            bodies.append(ResourceBody(at, self.last_end, title, attributes))
            if not self.accept(";") or self.kind == "}":
                return tuple(bodies)

    def attributes(self) -> tuple[AttributeOperation | AttributeSplat, ...]:
        """
        attributes = [attribute] ("," attribute)*
        attribute = (NAME | keyword) ("=>" | "+>") expression | "*" "=>" expression
        """
        attributes: list[AttributeOperation | AttributeSplat] = []
        while True:
            kind, text, at = self.kind, self.text, self.at
            if kind in _ATTRIBUTE_NAMES:
                self.advance()
                op = self.kind
                if op not in _ARROWS:
                    self.unexpected()
                self.advance()
                value = self.expression()
                attributes.append(AttributeOperation(at, value.end, text, op, value))
            elif kind == "*":
                self.advance()
                self.take("=>")
                value = self.expression()
                attributes.append(AttributeSplat(at, value.end, value))
            if self.kind != "," or (self.following() not in _ATTRIBUTE_NAMES and self.following() != "*"):
                return tuple(attributes)
            self.advance()

    def untitled(self, left: SyntaxNode, attributes: tuple[AttributeOperation | AttributeSplat, ...], brace: int) -> SyntaxNode:
        """Return defaults for a type, an override for a reference, and the call with a hash that a name seems to be."""
        at, end = left.at, self.last_end
        if isinstance(left, QualifiedReference):
            return ResourceDefaultsExpression(at, end, "", left, attributes)
        if isinstance(left, AccessExpression):
            return ResourceOverrideExpression(at, end, "", left, attributes)
        if not isinstance(left, QualifiedName):
            raise self.source.error("Expression is not valid as a resource, resource-default, or resource-override", at)
        entries = []
        for attribute in attributes:
            if isinstance(attribute, AttributeOperation) and attribute.op == "+>":
                raise self.source.error("Syntax error resource body without title or hash with +>", brace)
            key: SyntaxNode = (
                StringLiteral(brace, brace, attribute.name)
                if isinstance(attribute, AttributeOperation)
                else Nop(attribute.at, attribute.at)
            )
            entries.append(HashEntry(brace, end, key, attribute.value))
        hash_ = HashLiteral(brace, end, tuple(entries))
        return in_block(assemble_calls(self.source, [[left], [hash_]], []), at, end)
