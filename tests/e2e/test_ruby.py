"""A master with modules that have templates and functions in Ruby, and an agent that applies what comes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.needs import needs_ruby
from tests.support.pair import Pair

pytestmark = [needs_ruby, pytest.mark.slow]
MODULE = "code/environments/production/modules/m"
FUNCTION = "Puppet::Functions.create_function(:'m::double') do\n  dispatch(:double) { param 'Integer', :n }\n  def double(n) = n * 2\nend\n"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    manifest = f"file {{ '{tmp_path}/made': content => template('m/made.erb') }}"
    made = Pair(tmp_path, manifest)
    made.write(f"{MODULE}/templates/made.erb", "<%= @clientcert %> <%= scope.call_function('m::double', [21]) %>\n")
    made.write(f"{MODULE}/lib/puppet/functions/m/double.rb", FUNCTION)
    return made


async def test_an_agent_gets_what_templates_and_functions_in_ruby_make_and_what_changes_make(pair: Pair) -> None:
    async with pair.mastered():
        assert (await pair.run()).code == 2
        assert (pair.root / "made").read_text() == "agent1.test 42\n"
        assert (await pair.run()).code == 0
        pair.write(f"{MODULE}/lib/puppet/functions/m/double.rb", FUNCTION.replace("n * 2", "n * 20"))
        assert (await pair.run()).code == 2
        assert (pair.root / "made").read_text() == "agent1.test 420\n"
        pair.write(f"{MODULE}/templates/made.erb", "other")
        assert (await pair.run()).code == 2
        assert (pair.root / "made").read_text() == "other"


async def test_where_manifests_may_start_no_programs_there_is_no_ruby_either(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.write(f"{MODULE}/templates/made.erb", "<%= 21.digits %>")
    async with pair.mastered(compile_programs="false"):
        assert (await pair.run()).code == 1
    assert "made.erb is an ERB template, which needs Ruby" in caplog.text
