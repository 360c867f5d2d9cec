"""Questions between the programs and Ruby: however modules' Ruby is interrupted, no answer is ever taken for another one's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.environments.ruby.site import in_world, world
from tests.support.command_line import Puppet
from tests.support.needs import needs_ruby
from tests.support.ruby_apply import use_few_facts
from tests.support.started import Started, started

pytestmark = [needs_ruby, pytest.mark.slow]

# What interrupts a question, on the master and on the agent: `asks` is a Proc that asks and compares.
DISTURBANCES = """
def disturbed(how, random, asks)
  case how
  when 0 then 20.times { asks.call }
  when 1, 2 then interrupted(Timeout::Error) { Timeout.timeout(random.rand * 0.002) { 60.times { asks.call } } }
  when 3 then Array.new(4) { Thread.new { 12.times { asks.call } } }.each(&:join)
  when 4, 5
    thread = Thread.new { 60.times { asks.call } }
    thread.report_on_exception = false
    sleep(random.rand * 0.002)
    how == 4 ? thread.raise(IOError) : thread.kill
    interrupted(IOError) { thread.join }
  when 6
    Process.wait(fork { interrupted(StandardError) { asks.call } })
    asks.call
  when 7
    asking = Thread.current
    interrupted(IOError) do
      thread = Thread.new { sleep(random.rand * 0.002) && asking.raise(IOError) }
      60.times { asks.call }
      thread.join
    end
  end
end

def interrupted(error)
  yield
rescue error
  nil
end
"""
STRESS = """
require 'timeout'
Puppet::Functions.create_function(:stress) do
  dispatch(:stress) { param 'Integer', :seed; param 'String', :node }
DISTURBANCES
  def stress(seed, node)
    scope, random, asked, wrong = closure_scope, Random.new(seed), 0, []
    asks = lambda do
      number = random.rand(10)
      answer = scope["v#{number}"]
      asked += 1
      wrong << answer unless answer == "#{number} of #{node}"
    end
    6.times do
      disturbed(random.rand(8), random, asks)
      nested(random.rand(6), scope, random, asks)
    end
    [asked, wrong]
  end

  def nested(how, scope, random, asks)
    case how
    when 0 then scope.call_function('with', [1]) { |_| asks.call }
    when 1 then scope.call_function('each', [[1, 2]]) { |_| asks.call; break }
    when 2 then catch(:done) { scope.call_function('each', [[1, 2]]) { |_| asks.call; throw :done } }
    when 3 then returned(scope, asks)
    when 4
      interrupted(Timeout::Error) do
        Timeout.timeout(random.rand * 0.002) { scope.call_function('each', [[1, 2]]) { |_| 30.times { asks.call } } }
      end
    when 5 then scope.call_function('each', [[1, 2]]) { |_| Thread.new { scope.call_function('with', [1]) { |_| asks.call } }.value }
    end
    asks.call
  end

  def returned(scope, asks)
    scope.call_function('each', [[1, 2]]) { |_| asks.call; return }
  end
end
""".replace("DISTURBANCES", DISTURBANCES)
VARIABLES = "".join(f'$v{number} = "{number} of ${{node}}"\n' for number in range(10))


def test_no_answer_of_ten_thousand_is_taken_for_anothers_on_the_master() -> None:
    environment = world({"modules/m/lib/puppet/functions/stress.rb": STRESS})
    asked = 0
    for seed in range(1000):
        if asked >= 10_000:
            break
        manifest = f"$node = 'node{seed}'\n{VARIABLES}$found = stress({seed}, $node)\nnotice($found[0])\nnotice($found[1])"
        number, wrong = in_world(environment, manifest).notices
        assert wrong == "[]", f"seed {seed}"
        asked += int(number)
    environment.close()
    assert asked >= 10_000


# --- two nodes

FUNCTION = """
require 'timeout'
Puppet::Functions.create_function(:'t::f') do
  dispatch(:f) { param 'String', :mode; param 'String', :own }
  def f(mode, own)
    s = closure_scope
    if mode == 'bad'
      100.times { begin; Timeout.timeout(0.0004) { 40.times { s['own'] } }; rescue Timeout::Error; break; end }
    end
    "text for #{own}"
  end
end
"""
MANIFEST = """
$own = "SECRET-OF-${trusted['certname']}"
notify { t::f($facts['mode'], $own): }
notify { "2 ${t::f('ok', $own)}": }
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Started]:
    with started(tmp_path, compile_workers="1") as made:
        made.process.write({"modules/t/lib/puppet/functions/t/f.rb": FUNCTION, "manifests/site.pp": MANIFEST})
        yield made


def texts(site: Started, node: str, mode: str) -> list[str]:
    """The messages of a node's catalog; an empty list when it is refused."""
    facts = json.dumps({"name": node, "values": {"mode": mode}})
    form = f"facts_format=application%2Fjson&facts={quote(quote(facts, safe=''))}".encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    answer = site.ask("POST", f"/puppet/v3/catalog/{node}?environment=production", form, name=node, headers=kind)
    assert answer.status in (200, 500)
    resources = json.JSONDecoder().raw_decode(answer.body.decode())[0]["resources"] if answer.status == 200 else []
    return [each["title"] for each in resources if each["type"] == "Notify"]


def test_no_node_gets_the_text_of_another_whose_function_is_interrupted(site: Started) -> None:
    nodes = ("agent1", "agent2")
    own = {node: [f"text for SECRET-OF-{node}", f"2 text for SECRET-OF-{node}"] for node in nodes}
    assert {node: texts(site, node, "ok") for node in nodes} == own
    for _ in range(5):
        assert texts(site, "agent2", "bad") == own["agent2"]
        for _ in range(4):
            assert {node: texts(site, node, "ok") for node in nodes} == own


# --- the agent

TYPE = """
Puppet::Type.newtype(:asker) do
  ensurable
  newparam(:name, namevar: true)
  newparam(:seed)
end
"""
PROVIDER = """
require 'timeout'
Puppet::Type.type(:asker).provide(:stress) do
DISTURBANCES
  def exists? = false

  def create
    expected = ($settings ||= %i[certname statedir vardir confdir].map { |name| [name, Puppet[name]] }.to_h)
    random, asked, wrong = Random.new(resource[:seed].to_i), 0, []
    asks = lambda do
      name = expected.keys[random.rand(4)]
      answer = Puppet[name]
      asked += 1
      wrong << answer unless answer == expected[name]
    end
    20.times { disturbed(random.rand(8), random, asks) }
    Puppet.notice("#{asked} asked, wrong: #{wrong.inspect}")
  end
end
""".replace("DISTURBANCES", DISTURBANCES)


def test_no_answer_is_taken_for_anothers_on_the_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_few_facts(monkeypatch)
    library = tmp_path / "modules" / "m" / "lib" / "puppet"
    for folder, name, text in (("type", "asker", TYPE), ("provider/asker", "stress", PROVIDER)):
        (library / folder).mkdir(parents=True)
        (library / folder / f"{name}.rb").write_text(text)
    (tmp_path / "conf").mkdir()
    manifest = "range(1, 20).each |$seed| { asker { String($seed): ensure => present, seed => $seed } }"
    said = Puppet(tmp_path, capsys)("apply", "--color=false", "--modulepath", str(tmp_path / "modules"), "-e", manifest)
    assert said.err == "" and said.out.count(" asked, wrong: []") == 20
