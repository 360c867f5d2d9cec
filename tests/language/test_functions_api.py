"""How functions are declared and dispatched. Origin of the messages: Puppet 7.23."""

from __future__ import annotations

import types

import pytest

from language import functions
from language.callables.declarations import signature_of
from language.callables.signatures import Closure, Parameter, Signature
from language.functions import Context, Function, builtin_functions, function, legacy_function
from language.functions.api import collect
from language.types.kinds.scalars import IntegerType
from language.types.named.aliases import AliasType
from language.types.notation.parse import parse_type
from language.values.core import PuppetType, Value
from shared.errors import EvaluationError


class World:
    """The little of a Context that dispatching needs."""

    class types:
        @staticmethod
        def find_type(name: str) -> PuppetType | None:
            return AliasType("Port", IntegerType(1, 9)) if name.lower() == "port" else None


CONTEXT: Context = World()  # type: ignore[assignment]


@function("greet", "String[1] name", "Integer times?")
def greet(context: Context, name: str, times: int = 1) -> str:
    """Greetings."""
    return "hello " * times + name


@greet.also("Array[String] names", "Callable[1,1] &block")
def greet_all(context: Context, names: list[str], *, block: Closure) -> list[Value]:
    return [block(name) for name in names]


def block_of(count: int) -> Closure:
    return Closure(lambda *args: list(args), Signature([Parameter(f"p{i}") for i in range(count)]))


def failure(callee: Function, args: list[Value], block: Closure | None = None) -> str:
    with pytest.raises(EvaluationError) as caught:
        callee.call(CONTEXT, args, block)
    return caught.value.message


def test_the_first_signature_that_fits_is_called() -> None:
    assert greet.call(CONTEXT, ["x"]) == "hello x"
    assert greet.call(CONTEXT, ["x", 2]) == "hello hello x"
    assert greet.call(CONTEXT, [["a", "b"]], block_of(1)) == [["a"], ["b"]]
    assert greet.doc == "Greetings."


def test_one_signature_that_does_not_fit_is_one_line() -> None:
    single = Function("single", list(greet.dispatches[:1]))
    assert failure(single, [1]) == "'single' parameter 'name' expects a String value, got Integer"
    assert failure(single, []) == "'single' expects between 1 and 2 arguments, got none"
    assert failure(single, ["a"], block_of(1)) == "'single' does not expect a block"


def test_several_signatures_are_listed_with_the_reason_each() -> None:
    assert failure(greet, [1]) == (
        "The function 'greet' was called with arguments it does not accept. It expects one of:\n"
        "  (String[1] name, Integer times?)\n"
        "    rejected: parameter 'name' expects a String value, got Integer\n"
        "  (Array[String] names, Callable[1, 1] block)\n"
        "    rejected: parameter 'names' expects an Array value, got Integer"
    )


def test_a_block_of_the_wrong_arity_is_told() -> None:
    only = Function("only", list(greet.dispatches[1:]))
    assert failure(only, [["a"]]) == "'only' expects a block"
    assert failure(only, [["a"]], block_of(2)) == "'only' block expects 1 argument, got 2"


def test_repeated_parameters_and_blocks_in_the_notation() -> None:
    signature = signature_of(["Any first", "Integer rest+", "Callable &block?"])
    assert (signature.low, signature.high) == (2, None)
    assert signature.accepts(["x", 1, 2, 3])
    assert not signature.accepts(["x", 1, "y"])
    assert signature.accepts_block(None)


def test_aliases_of_the_function_and_of_the_site_are_known_in_signatures() -> None:
    @function("tuned", "Options options", "Port port", aliases={"Options": "Struct[{a => Integer}]"})
    def tuned(context: Context, options: Value, port: int) -> int:
        return port

    assert tuned.call(CONTEXT, [{"a": 1}, 5]) == 5
    assert "expects a Port = Integer[1, 9] value, got Integer[50, 50]" in failure(tuned, [{"a": 1}, 50])


def test_a_return_type_is_enforced() -> None:
    @function("liar", returns="String")
    def liar(context: Context) -> Value:
        return 1

    assert failure(liar, []) == "value returned from liar has wrong type, expects a String value, got Integer"


def test_a_message_of_ones_own_for_arguments_that_fit_nothing() -> None:
    @function("picky", "Integer n")
    def picky(context: Context, n: int) -> int:
        return n

    @picky.mismatch("Any n")
    def refused(context: Context, n: Value) -> str:
        return f"wants a number, not {n}"

    assert failure(picky, ["x"]) == "'picky' wants a number, not x"


def test_legacy_functions_count_arguments_and_get_no_undef() -> None:
    @legacy_function("old", -2)
    def old(context: Context, first: Value, *rest: Value) -> list[Value]:
        return [first, *rest]

    assert old.call(CONTEXT, [None, [None]]) == ["", [None]]
    assert failure(old, []) == "old(): Wrong number of arguments given (0 for minimum 1)"


def test_two_functions_of_one_name_are_refused() -> None:
    one, two = types.ModuleType("one"), types.ModuleType("two")
    one.f = Function("f")  # type: ignore[attr-defined]
    two.f = Function("f")  # type: ignore[attr-defined]
    with pytest.raises(EvaluationError, match="declared twice"):
        collect([one, two])


def test_every_builtin_has_signatures_and_a_doc() -> None:
    found = builtin_functions()
    assert {"each", "new", "sprintf", "regsubst", "versioncmp", "notice", "lest", "tree_each"} <= set(found)
    for name, declared in found.items():
        assert declared.name == name
        assert declared.signatures(), name
        assert declared.doc, name


def test_usages_are_listed_from_the_declarations() -> None:
    found = builtin_functions()
    assert found["join"].usages() == ["join(Array arg, String delimiter?)"]
    assert found["notice"].usages() == ["notice(Any values*) >> Undef"]
    assert found["lest"].usages() == ["lest(Any arg, Callable[0, 0] block)"]
    assert found["sprintf"].usages() == ["sprintf(Any arg0, Any args*)"]


def test_the_public_names_for_module_authors_stay() -> None:
    assert functions.__all__ == [
        "DEFAULT", "URI", "Binary", "Closure", "Context", "Deferred", "Dispatch", "EvaluationError", "Function", "Instance", "Iterator",
        "LookupMethods", "Regexp", "SemVer", "SemVerRange", "Sensitive", "Timespan", "Timestamp", "Types", "Value", "builtin_functions",
        "entries", "function", "key_of", "legacy_function", "value_of",
    ]  # fmt: skip


def test_a_lambda_checks_fills_and_drops_arguments() -> None:
    closure = Closure(lambda a, b=7: [a, b], Signature([Parameter("a", parse_type("Integer")), Parameter("b", optional=True)]))
    assert closure(1) == [1, 7]
    assert closure(1, 2, 3) == [1, 2]
    with pytest.raises(EvaluationError, match=r"^block parameter 'a' expects an Integer value, got String$"):
        closure("x")
    with pytest.raises(EvaluationError, match=r"^Parameter \$a is required but no value was given$"):
        closure()


def test_a_captures_rest_parameter_with_an_array_type_takes_its_size() -> None:
    parameter = Parameter.declared("x", parse_type("Array[Integer, 1, 2]"), splat=True)
    signature = Signature([parameter])
    assert signature.accepts([1, 2])
    assert not signature.accepts([])
    assert not signature.accepts([1, 2, 3])
    assert not signature.accepts(["a"])


def test_a_plain_lambda_is_called_without_checks() -> None:
    closure = block_of(2)
    assert closure.caller(2) is closure.code
    assert closure.caller(3) is not closure.code


def test_a_signature_that_was_only_shown_still_finds_its_types() -> None:
    @function("f", "Port x")
    def shown(context: Context, x: Value) -> Value:
        return x

    assert len(shown.usages()) == 1
    assert shown.call(CONTEXT, [9]) == 9
    with pytest.raises(EvaluationError, match="expects a Port"):
        shown.call(CONTEXT, [10])
