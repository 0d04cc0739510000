// Runs side by side: what they used, where they part, and how their outputs and states differ.
import { block, difference, make, money, seconds, table } from "./dom.js"
import { page, show } from "./shell.js"
import { stateTable } from "./tables.js"
import { costs, folded } from "./run.js"

const MOST = 6
const MOST_NODES = 200

async function read(runId) {
  const path = `/runs/${encodeURIComponent(runId)}`
  const [info, { plan }, { steps }] = await Promise.all([page.server.get(path), page.server.get(`${path}/plan`), page.server.get(`${path}/steps`)])
  const last = steps.filter((step) => step.kind === "done").pop()
  const { moment } = last && plan ? await page.server.get(`${path}/state?at=${encodeURIComponent(last.id)}`).catch(() => ({ moment: null })) : { moment: null }
  const run = folded(steps, steps.length)
  return { runId, info, steps, run, state: moment ? moment.state : null, used: new Map(costs(run, plan).map((each) => [each.name, each])) }
}

// The first firing that is not in both, or has another output in each.
function parting(first, second) {
  const ends = ({ steps }) => steps.filter((step) => step.kind === "done")
  const others = new Map(ends(second).map((step) => [step.activation, step]))
  for (const step of ends(first)) {
    const other = others.get(step.activation)
    if (!other || JSON.stringify(other.output) !== JSON.stringify(step.output)) return { step, other }
  }
  const known = new Set(ends(first).map((step) => step.activation))
  const other = ends(second).find((step) => !known.has(step.activation))
  return other ? { step: null, other } : null
}

export async function compare(ids, isCurrent) {
  const all = await Promise.all(ids.slice(0, MOST).map(read))
  if (!isCurrent()) return
  const facts = [
    ["status", (each) => each.run.status], ["time", (each) => seconds(each.run.at)], ["steps", (each) => each.steps.length],
    ["tokens", (each) => each.run.tokens], ["money", (each) => money(each.run.cost) || "–"],
    ["output", (each) => (each.run.output === null ? "–" : block(each.run.output))],
    ["error", (each) => (each.run.status !== "paused" && each.run.error) || "–"],
  ]
  const head = all.map((each) => `${each.info.workflow} ${each.runId}`)
  const weight = (name) => Math.max(...all.map(({ used }) => (used.has(name) ? used.get(name).cost || used.get(name).tokens : 0)))
  const names = [...new Set(all.flatMap((each) => [...each.used.keys()]))].sort((a, b) => weight(b) - weight(a)).slice(0, MOST_NODES)
  const largest = Math.max(1e-12, ...all.flatMap((each) => [...each.used.values()].map((used) => used.cost || used.tokens)))
  const cell = (used) => (used
    ? [[`${used.times}×`, used.tokens ? `${used.tokens} tok` : "", money(used.cost), used.time ? seconds(used.time) : ""].filter(Boolean).join(" · "), " ",
      used.cost || used.tokens ? make("meter", { value: used.cost || used.tokens, max: largest, "aria-label": `part of ${used.name}` }) : ""]
    : "–")
  const row = (name, cells) => [make("th", { scope: "row" }, name), ...cells.map((each) => make("td", {}, each))]
  show(
    make("h1", {}, "Runs side by side"),
    wide("runs", table(["what", ...head], facts.map(([name, of]) => row(name, all.map(of))))),
    make("h2", {}, "Costs of each node"),
    wide("costs", table(["node", ...head], names.map((name) => row(name, all.map((each) => cell(each.used.get(name))))))),
    all.length === 2 ? between(...all) : null,
  )
}

const wide = (label, inside) => make("div", { class: "scroll sides", role: "region", tabindex: 0, "aria-label": label }, inside)

function between(first, second) {
  const part = parting(first, second)
  const where = part && (part.step || part.other).activation
  const output = difference(first.run.output, second.run.output)
  return make("section", { "aria-label": "differences" },
    make("h2", {}, "Where they part"),
    part ? make("p", {}, `${where}${!part.step ? " ran in the second alone" : !part.other ? " ran in the first alone" : ", with another output"}`)
      : make("p", {}, "The same firings, with the same outputs."),
    !part ? null : part.step && part.other ? difference(part.step.output, part.other.output) : block((part.step || part.other).output),
    make("h2", {}, "Output"), output || make("p", {}, "The same."),
    make("h2", {}, "State at the end"),
    first.state && second.state ? stateTable(second.state, first.state, "differs") : make("p", { class: "soft" }, "The states cannot be had: the workflow is not here."))
}
