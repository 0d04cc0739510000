// The calculator of "What a run costs". The constants are those of the page's first table.
const COSTS_ASKED = [
  ["runs", "runs", 1000],
  ["nodes", "firings of nodes in a run", 20],
  ["calls", "calls of models in a run", 9],
  ["row", "of them one after the other", 5],
  ["seconds", "seconds of a call", 4],
  ["sent", "tokens sent in a call", 240],
  ["received", "tokens received in a call", 300],
  ["priceSent", "price of 1,000,000 tokens sent", 0.4],
  ["priceReceived", "price of 1,000,000 tokens received", 1.6],
  ["bytes", "bytes that a firing writes", 2000],
];

function costs(given, sync, constant) {
  const { runs, nodes, calls } = given;
  const tokens = calls * (given.sent + given.received);
  const money = (calls * (given.sent * given.priceSent + given.received * given.priceReceived)) / 1e6;
  const processor =
    constant("a run, µs") + nodes * constant("a firing, µs") + calls * constant("a model call of an agent, µs");
  const added = processor + (sync ? nodes * constant(`a durable step, ${sync}, µs`) : 0);
  const kept = sync ? nodes * (constant("a durable step, bytes on the disk") + given.bytes) : 0;
  return [
    ["calls of models", runs * calls, ""],
    ["tokens", runs * tokens, ""],
    ["money", runs * money, ""],
    ["processor time of axil", (runs * processor) / 1e6, "s"],
    ["time of a run", given.row * given.seconds + added / 1e6, "s"],
    ["of it axil's", added / 1e3, "ms"],
    ["bytes on the disk", (runs * kept) / 1e6, "MB"],
    ["memory, if all wait at once", (runs * constant("a run that waits, KB")) / 1e3, "MB"],
  ];
}

function showCosts() {
  const place = document.getElementById("costs");
  if (!place || place.firstChild) return;
  const cells = [...document.querySelectorAll("td:first-child")];
  const constant = (name) => {
    const cell = cells.find((each) => each.textContent.trim() === name);
    return cell ? parseFloat(cell.nextElementSibling.textContent.replaceAll(",", "")) : 0;
  };
  const row = (table, name, second) => {
    const added = table.insertRow();
    added.insertCell().append(name);
    added.insertCell().append(second);
  };
  const asked = document.createElement("table");
  const inputs = COSTS_ASKED.map(([name, text, value]) => {
    const input = Object.assign(document.createElement("input"), { type: "number", min: 0, step: "any", name, value });
    input.setAttribute("aria-label", text);
    row(asked, text, input);
    return input;
  });
  const sync = document.createElement("select");
  sync.setAttribute("aria-label", "journal");
  for (const text of ["full sync", "relaxed", "none"]) sync.append(new Option(text, text === "none" ? "" : text));
  row(asked, "journal", sync);
  const found = document.createElement("table");
  const compute = () => {
    const given = Object.fromEntries(inputs.map((input) => [input.name, Math.max(0, parseFloat(input.value) || 0)]));
    found.replaceChildren();
    for (const [name, value, unit] of costs(given, sync.value, constant))
      row(found, name, `${value.toLocaleString("en", { maximumSignificantDigits: 3 })} ${unit}`);
  };
  asked.addEventListener("input", compute);
  place.append(asked, found);
  compute();
}

document.addEventListener("DOMContentLoaded", showCosts);
