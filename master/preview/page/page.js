
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const AT_ONCE = 100;  // entries that are built before "show more"
  const FEW = 6;  // entries that are shown with all that they have
  const STATES = {unaffected: "not affected", unchanged: "unchanged", changed: "changed", failed: "failed", fixed: "fixed"};
  const KINDS = {resource: "resources", parameter: "parameters", class: "classes", containment: "containment", order: "order"};

  // Builds an element; whatever comes from the data becomes text and nothing else.
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  };
  const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many || one + "s"}`;
  const names = data.nodes.map(([name]) => name);
  const members = (runs) => {
    const numbers = [];
    for (let at = 0; at < runs.length; at += 2) for (let number = runs[at]; number <= runs[at + 1]; number += 1) numbers.push(number);
    return numbers;
  };
  const size = (runs) => {
    let total = 0;
    for (let at = 0; at < runs.length; at += 2) total += runs[at + 1] - runs[at] + 1;
    return total;
  };
  const has = (runs, number) => {
    for (let at = 0; at < runs.length; at += 2) if (runs[at] <= number && number <= runs[at + 1]) return true;
    return false;
  };
  // What a link calls an entry: the same in every page that has it.
  const keyOf = (entry) => {
    const text = [entry.kind, entry.action, entry.subject, entry.parameter, entry.container, entry.message, entry.file, entry.reason].join("\0");
    let hash = 0xcbf29ce484222325n;
    for (const byte of new TextEncoder().encode(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
    return hash.toString(16).padStart(16, "0");
  };
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

  // What is searched, made once for each entry.
  const texts = new Map();
  const textOf = (entry) => {
    if (!texts.has(entry)) {
      const {nodes, ...rest} = entry;
      texts.set(entry, JSON.stringify(Object.values(rest)).replaceAll("\\\"", "\"").toLowerCase());
    }
    return texts.get(entry);
  };
  // A search finds an entry by its own words, or by the name of a node that it touches.
  let found = null;
  const prepare = (words) => {
    found = words.length === 1 ? names.flatMap((name, number) => (name.toLowerCase().includes(words[0]) ? [number] : [])) : [];
  };
  const matches = (entry, words) =>
    words.every((word) => textOf(entry).includes(word)) || found.some((number) => has(entry.nodes, number));

  const diffOf = (lines) => make("pre", {class: "diff"}, ...lines.map((line) => {
    const kind = {"+": "plus", "-": "minus", "@": "at"}[line[0]] || "same";
    return make("span", {class: kind}, line || " ");
  }));
  const valueOf = (sign, value) => make("span", {class: sign === "+" ? "plus" : "minus"}, `${sign} ${shown(value)}`);

  const nodesOf = (runs) => {
    const all = members(runs);
    const place = make("div", {class: "nodes"});
    const add = (from, to) => {
      for (const number of all.slice(from, to)) {
        place.append(make("button", {type: "button", title: "Show what changes on this node", onclick: () => open_(names[number])}, names[number]));
      }
      if (to < all.length) {
        const more = make("button", {type: "button", class: "more", onclick: () => { more.remove(); add(to, to + 1000); }}, `${count(all.length - to, "more node")} …`);
        place.append(more);
      }
    };
    add(0, 40);
    return place;
  };

  const changeBody = (change) => {
    const body = [];
    if (change.secret) body.push(make("p", {}, "The values differ. They are sensitive and therefore not shown."));
    else if (change.diff) body.push(diffOf(change.diff));
    else if (change.old !== null || change.new !== null) {
      const values = [];
      if (change.old !== null) values.push(valueOf("-", change.old));
      if (change.new !== null) values.push(valueOf("+", change.new));
      body.push(make("pre", {}, ...values));
    }
    if (change.parameters) {
      const sign = change.action === "removed" ? "minus" : "plus";
      const width = Math.max(0, ...Object.keys(change.parameters).map((name) => name.length));
      body.push(make("pre", {}, ...Object.entries(change.parameters).map(([name, value]) =>
        make("span", {class: sign}, `${name.padEnd(width)} => ${shown(value)}`))));
    }
    if (change.container) body.push(make("p", {}, change.kind === "order" ? "Comes after " : "Contained in ", make("code", {}, change.container)));
    const places = change.places || {};
    for (const [side, label] of [["old", data.from.name], ["new", data.to.name]]) {
      if (places[side]) body.push(make("p", {}, `Declared in ${label}: `, make("code", {}, places[side])));
    }
    if (change.varies) body.push(make("p", {}, `Values differ from node to node; these are of ${names[change.nodes[0]]}.`));
    if (change.truncated) body.push(make("p", {}, "Only the beginning is shown."));
    return body;
  };

  const entryOf = (action, subject, runs, body, open, link) => {
    const counted = runs === null ? null : make("span", {class: "count"}, count(size(runs), "node"));
    const summary = make("summary", {}, make("span", {class: `action ${action}`}, action), subject, counted);
    const details = make("details", {class: "entry"}, summary);
    // The body is built when it is first opened: a page of 2,000 nodes opens at once.
    const build = () => {
      if (details.children.length > 1) return;
      details.append(make("div", {class: "body"}, ...body(), runs === null ? null : nodesOf(runs),
        make("p", {}, make("a", {class: "link", href: `#${link}`}, "Link to this entry"))));
    };
    details.addEventListener("toggle", () => { if (details.open) build(); });
    if (open) { build(); details.open = true; }
    return details;
  };
  const changeSubject = (change) => {
    const subject = make("span", {class: "subject"}, change.kind === "class" ? `class ${change.subject}` : change.subject);
    if (change.parameter) subject.append(" ", make("span", {class: "parameter"}, change.parameter));
    const note = change.lines ? count(change.lines, "line") : {containment: "containment", order: `after ${change.container}`}[change.kind] || "";
    if (note) subject.append(" ", make("span", {class: "note"}, note));
    if (change.secret) subject.append(" ", make("span", {class: "note"}, "(sensitive)"));
    return subject;
  };
  const changeEntry = (change, alone, open) =>
    entryOf(change.action, changeSubject(change), alone ? null : change.nodes, () => changeBody(change), open, `entry=${keyOf(change)}`);
  const messageEntry = (message, open) => entryOf(message.state, make("span", {class: "subject"}, message.message), message.nodes, () => [
    message.file ? make("p", {}, make("code", {}, message.line ? `${message.file}:${message.line}` : message.file)) : null,
    message.hint ? make("p", {}, message.hint) : null,
    make("p", {}, {new: `Only in ${data.to.name}`, old: "On both sides", fixed: `Only in ${data.from.name}`}[message.state]),
  ], open, `entry=${keyOf(message)}`);
  const unstableEntry = (value, open) => entryOf("unstable", make("span", {class: "subject"}, value.subject, value.parameter ? " " : "",
    make("span", {class: "parameter"}, value.parameter || "")), value.nodes, () => [make("p", {}, value.reason)], open, `entry=${keyOf(value)}`);

  const nodeEntry = ([name, state], number, open) => entryOf(state, make("span", {class: "subject"}, name), null, () => {
    const touching = data.changes.filter((change) => has(change.nodes, number));
    const said = [...data.errors, ...data.warnings].filter((message) => has(message.nodes, number));
    const unstable = data.unstable.filter((value) => has(value.nodes, number));
    const few = said.length + touching.length + unstable.length <= FEW;
    const rest = [...said.map((message) => messageEntry(message, few)), ...touching.map((change) => changeEntry(change, true, few)),
      ...unstable.map((value) => unstableEntry(value, few))];
    const nothing = {unaffected: "The change cannot affect its catalog.", unchanged: "Both catalogs are the same."}[state];
    return rest.length ? rest : [make("p", {}, nothing || "No further details are available.")];
  }, open, `node=${encodeURIComponent(name)}`);

  const selected = (id) => byId(id).value;
  const VIEWS = {
    changes: {
      label: "By change", selects: ["action", "kind"], total: data.changes.length, noun: "change",
      entries: (words) => data.changes.filter((change) =>
        (!selected("action") || change.action === selected("action")) && (!selected("kind") || change.kind === selected("kind")) && matches(change, words)),
      build: (change, open) => changeEntry(change, false, open),
    },
    nodes: {
      label: "By node", selects: ["state"], total: data.nodes.length, noun: "node",
      entries: (words) => data.nodes.map((node, number) => ({node, number})).filter(({node: [name, state]}) =>
        (!selected("state") || state === selected("state")) && words.every((word) => name.toLowerCase().includes(word))),
      build: ({node, number}, only) => nodeEntry(node, number, only),
    },
    messages: {
      label: "Errors and warnings", selects: [], total: data.errors.length + data.warnings.length, noun: "message",
      entries: (words) => [...data.errors, ...data.warnings].filter((message) => matches(message, words)), build: messageEntry,
    },
    unstable: {
      label: "Unstable values", selects: [], total: data.unstable.length, noun: "value",
      entries: (words) => data.unstable.filter((value) => matches(value, words)), build: unstableEntry,
    },
  };

  const newErrors = data.errors.filter((error) => error.state === "new");
  let view = newErrors.length ? "messages" : "changes";
  let linked = "";  // the key of the only entry that is shown, as a link asks for it
  const show = (name) => {
    view = name;
    linked = "";
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    draw();
  };
  const follow = () => {
    const [kind, value] = location.hash.slice(1).split("=");
    if (kind === "node") { open_(decodeURIComponent(value)); return; }
    const place = {changes: data.changes, messages: [...data.errors, ...data.warnings], unstable: data.unstable};
    const name = kind === "entry" && Object.keys(place).find((each) => place[each].some((entry) => keyOf(entry) === value));
    if (!name) return;
    view = name;
    linked = value;
    for (const id of ["search", "action", "kind"]) byId(id).value = "";
    draw();
  };
  const draw = () => {
    const {selects, entries, build, noun, total} = VIEWS[view];
    for (const id of ["action", "kind", "state"]) byId(id).hidden = !selects.includes(id);
    for (const tab of byId("tabs").children) {
      tab.setAttribute("aria-selected", String(tab.dataset.view === view));
      tab.tabIndex = tab.dataset.view === view ? 0 : -1;
    }
    const words = byId("search").value.toLowerCase().split(/\s+/).filter((word) => word);
    prepare(words);
    const list = linked ? entries([]).filter((entry) => keyOf(entry) === linked) : entries(words);
    byId("matched").textContent = list.length === total ? count(total, noun) : `${list.length.toLocaleString("en")} of ${count(total, noun)}`;
    const place = byId("list");
    place.replaceChildren();
    const add = (from) => {
      place.append(...list.slice(from, from + AT_ONCE).map((entry) => build(entry, list.length === 1 || (noun !== "node" && list.length <= FEW))));
      if (from + AT_ONCE < list.length) {
        const more = make("button", {type: "button", class: "more", onclick: () => { more.remove(); add(from + AT_ONCE); }}, `Show more (${count(list.length - from - AT_ONCE, noun)} left)`);
        place.append(more);
      }
    };
    add(0);
    if (linked) place.append(make("button", {type: "button", class: "more", onclick: () => show(view)}, `Show ${count(total, noun)}`));
    if (!list.length) place.append(make("p", {class: "nothing"}, total ? "Nothing matches." : "Nothing to show."));
  };
  const open_ = (name) => {
    byId("search").value = name;
    byId("state").value = "";
    show("nodes");
    window.scrollTo(0, 0);
  };

  const options = (id, all, choices) => byId(id).append(make("option", {value: ""}, all),
    ...Object.entries(choices).map(([value, label]) => make("option", {value}, label)));
  const revision = (side) => (side.revision ? `${side.name} (${side.revision.slice(0, 12)})` : side.name);
  byId("sides").textContent = `${revision(data.from)} → ${revision(data.to)}`;
  const subject = (side) => (side.subject ? [make("li", {}, make("code", {}, side.name), ` ${side.subject}`)] : []);
  byId("commits").append(...subject(data.from), ...subject(data.to));
  const {counts, elsewhere = []} = data;
  byId("summary").textContent = `${count(counts.compiled, "node")} compiled on both sides, ${counts.unaffected.toLocaleString("en")} skipped (not affected); `
    + `${elsewhere.length ? `${count(elsewhere.length, "node")} left out, in another environment; ` : ""}`
    + `${data.environment ? `environment ${data.environment}; ` : ""}${data.time ? `${data.time.slice(0, 16).replace("T", " ")} UTC, ` : ""}`
    + `${data.seconds.toFixed(1)} seconds`;
  // One node that fails among thousands is seen, too.
  const widths = Object.keys(STATES).map((state) => (counts[state] ? Math.max(8, 1000 * counts[state] / counts.nodes) : 0));
  const scale = 1000 / Math.max(1, widths.reduce((sum, width) => sum + width, 0));
  let left = 0;
  for (const [index, [state, label]] of Object.entries(STATES).entries()) {
    const number = counts[state];
    const width = widths[index] * scale;
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({x: left, y: 0, width, height: 14, class: state})) part.setAttribute(name, value);
    byId("bar").append(part);
    left += width;
    byId("states").append(make("li", {}, make("button", {
      type: "button", title: `Show the nodes that are ${label}`, onclick: () => { byId("search").value = ""; byId("state").value = state; show("nodes"); },
    }, make("span", {class: `dot ${state}`}), make("b", {}, number.toLocaleString("en")), ` ${label}`)));
  }
  options("action", "all actions", {added: "added", removed: "removed", changed: "changed"});
  options("kind", "all kinds", KINDS);
  options("state", "all states", STATES);
  for (const [name, {label, total}] of Object.entries(VIEWS)) {
    if (name === "unstable" && !total) continue;
    byId("tabs").append(make("button", {type: "button", role: "tab", "aria-controls": "list", "data-view": name, onclick: () => show(name)},
      `${label} (${total.toLocaleString("en")})`));
  }
  byId("tabs").addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    const tabs = [...byId("tabs").children];
    const next = tabs[(tabs.findIndex((tab) => tab.dataset.view === view) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", () => show(view));
  for (const id of ["action", "kind", "state"]) byId(id).addEventListener("change", () => show(view));
  window.addEventListener("hashchange", follow);
  draw();
  follow();
})();
