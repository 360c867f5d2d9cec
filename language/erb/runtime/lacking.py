"""Methods that are translated for some classes of Ruby's core, and which other classes lack."""

from __future__ import annotations

LACKING: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "Array": (
            "% / < <= > >= abs capitalize center chars chomp chop delete_prefix delete_suffix downcase each_key each_pair "
            "each_value end_with? gsub has_key? has_value? invert is_a key? keys lines ljust lstrip match match? merge "
            "merge! rjust round rstrip scan split start_with? store strip sub swapcase times to_f to_hash to_i to_sym tr "
            "upcase update value? values "
        ),
        "Float": (
            "& << [] []= all? any? capitalize center chars chomp chop collect collect! compact compact! concat count delete "
            "delete_prefix delete_suffix detect dig downcase drop each each_index each_key each_pair each_value "
            "each_with_index each_with_object empty? end_with? fetch filter find first flat_map flatten flatten! gsub "
            "has_key? has_value? include? index inject invert is_a join key? keys last length lines ljust lstrip map map! "
            "match match? max member? merge merge! min none? partition push reduce reject reverse rjust rstrip scan select "
            "size sort sort! sort_by split start_with? store strip sub sum swapcase take times to_a to_h to_hash "
            "to_sym tr transpose uniq uniq! unshift upcase update value? values values_at zip | "
            "reject! shift "
        ),
        "Hash": (
            "% & * + - / << abs capitalize center chars chomp chop collect! concat delete_prefix delete_suffix downcase "
            "each_index end_with? flatten! gsub index is_a join last lines ljust lstrip map! match match? push reverse "
            "rjust round rstrip scan sort! split start_with? strip sub swapcase times to_f to_i to_sym tr transpose uniq! "
            "unshift upcase | "
        ),
        "Integer": (
            "[]= all? any? capitalize center chars chomp chop collect collect! compact compact! concat count delete "
            "delete_prefix delete_suffix detect dig downcase drop each each_index each_key each_pair each_value "
            "each_with_index each_with_object empty? end_with? fetch filter find first flat_map flatten flatten! gsub "
            "has_key? has_value? include? index inject invert is_a join key? keys last length lines ljust lstrip map map! "
            "match match? max member? merge merge! min none? partition push reduce reject reverse rjust rstrip scan select "
            "sort sort! sort_by split start_with? store strip sub sum swapcase take to_a to_h to_hash to_sym tr "
            "transpose uniq uniq! unshift upcase update value? values values_at zip "
            "reject! shift "
        ),
        "String": (
            "& - / abs all? any? collect collect! compact compact! detect dig drop each each_index each_key each_pair "
            "each_value each_with_index each_with_object fetch filter find first flat_map flatten flatten! has_key? "
            "has_value? inject invert is_a join key? keys last map map! max member? merge merge! min none? push reduce "
            "reject round select sort sort! sort_by store take times to_a to_h to_hash transpose uniq uniq! unshift update "
            "value? values values_at zip | "
            "reject! shift "
        ),
        "Symbol": (
            "% & * + - / << []= abs all? any? center chars chomp chop collect collect! compact compact! concat count delete "
            "delete_prefix delete_suffix detect dig drop each each_index each_key each_pair each_value each_with_index "
            "each_with_object fetch filter find first flat_map flatten flatten! gsub has_key? has_value? include? index "
            "inject invert is_a join key? keys last lines ljust lstrip map map! max member? merge merge! min none? "
            "partition push reduce reject reverse rjust round rstrip scan select sort sort! sort_by split store strip sub "
            "sum take times to_a to_f to_h to_hash to_i tr transpose uniq uniq! unshift update value? values values_at zip "
            "| "
            "reject! shift "
        ),
        "Range": (
            "& * + - / < << <= > >= [] []= abs capitalize center chars chomp chop collect! compact! concat delete "
            "delete_prefix delete_suffix dig downcase each_index each_key each_pair each_value empty? end_with? fetch "
            "flatten flatten! gsub has_key? has_value? index invert is_a join key? keys length lines ljust lstrip map! "
            "match match? merge merge! push reverse rjust round rstrip scan sort! split start_with? store strip sub "
            "swapcase times to_f to_hash to_i to_sym tr transpose uniq! unshift upcase update value? values values_at | "
            "reject! shift "
        ),
    }.items()
}
"""By the name of the class; nil, true and false have next to none."""

OF_NIL = frozenset(("&", "|", "<=>", "==", "class", "dup", "eql?", "inspect", "nil?", "to_a", "to_f", "to_h", "to_i", "to_json", "to_s"))
OF_BOOLEANS = frozenset(("&", "|", "<=>", "==", "class", "dup", "eql?", "inspect", "nil?", "to_json", "to_s"))
