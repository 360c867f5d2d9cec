"""Templates of random statements, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

VALUES = st.sampled_from(
    (
        "@a", "@b", "@list", "@hash", "1", "-2", "2.5", "nil", "true", "false", "'x'", '"y#{@a}"', ":sym", "[1, @b]", "{'k' => @a}",
        "scope['c']", "x", "y",
    )
)  # fmt: skip
METHODS = st.sampled_from(
    (
        ".to_s", ".inspect", ".nil?", ".empty?", ".length", ".join(',')", ".flatten", ".compact", ".sort", ".keys", ".first",
        ".upcase", ".strip", ".to_i", "['k']", "[0]", ".include?('x')", ".is_a?(Array)", ".split(',')", ".map { |v| v.to_s }",
        ".select { |v| v }", ".reverse", ".uniq", ".each_with_index.map { |v, i| [i, v] }", ".sort_by { |v| v.to_s }", ".to_a",
        "&.to_s", ".any? { |v| v }", ".dup", ".start_with?('x')",
    )
)  # fmt: skip
OPERATORS = st.sampled_from(("+", "-", "*", "==", "!=", "<", ">=", "&&", "||", "and", "or", "<=>", "=~"))


def expressions() -> st.SearchStrategy[str]:
    """Expressions in which the variables x and y may occur."""
    called = st.builds(lambda value, names: value + "".join(names), VALUES, st.lists(METHODS, max_size=3))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda left, operator, right: f"({left} {operator} {right})", inner, OPERATORS, inner),
            st.builds(lambda test, one, two: f"({test} ? {one} : {two})", inner, inner, inner),
            st.builds(lambda value: f"(!{value})", inner),
            st.builds(lambda one, two: f"[{one}, {two}]", inner, inner),
            st.builds(lambda one: f'"<#{{{one}}}>"', inner),
            st.builds(lambda test, one: f"(if {test} then {one} end)", inner, inner),
            st.builds(lambda one, two: f"(case {one} when {two} then 1 when String then 2 else 3 end)", inner, inner),
            st.builds(lambda one: f"Array({one})", inner),
            st.builds(lambda one: f"(y = {one})", inner),
        )

    return st.recursive(called, larger, max_leaves=6)


def statements() -> st.SearchStrategy[str]:
    """Parts of a template."""
    simple = st.one_of(
        st.builds(lambda value: f"<%= {value} %>", expressions()),
        st.builds(lambda value: f"<% x = {value} -%>\n", expressions()),
        st.builds(lambda value: f"<% @b = {value} %>", expressions()),
        st.builds(lambda value, test: f"<%= {value} if {test} -%>\n", expressions(), expressions()),
        st.sampled_from(("text\n", "  ", "<%# note %>", "\n", "a %> b", "<%% x %%>")),
        st.builds(lambda value: f"<% x ||= {value} -%>\n", expressions()),
        st.builds(lambda value: f"<% z = [{value}]; z << 1 -%>\n<%= z.inspect %>", expressions()),
    )

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda one, two: one + two, inner, inner),
            st.builds(lambda test, one, two: f"<% if {test} -%>\n{one}<% else %>{two}<% end -%>\n", expressions(), inner, inner),
            st.builds(lambda test, one: f"<%- unless {test} -%>\n{one}\n<%- end -%>\n", expressions(), inner),
            st.builds(lambda value, one: f"<% Array({value}).each do |x| -%>\n{one}<% end %>", expressions(), inner),
            st.builds(lambda value, one: f"<% @hash.each do |x, y| -%>\n{one}<% next if {value} -%>\n!<% end %>", expressions(), inner),
            st.builds(
                lambda value, one: f"<% @list.each_with_index do |x, y| -%>\n{one}<% break if {value} %><% end -%>\n", expressions(), inner
            ),
            st.builds(lambda value, one: f"<% Array({value}).sort_by {{ |x| x.to_s }}.map do |x| %>{one}<% end %>", expressions(), inner),
        )

    return st.recursive(simple, larger, max_leaves=8)


def templates() -> st.SearchStrategy[str]:
    """Whole templates, in which x and y are set."""
    return st.builds(lambda text: f"<% x = nil; y = 2 -%>\n{text}", statements())
