// The waterfall of a run: of each firing, call of a model and call of a tool when it began and ended, and what it used.
import { LongList, make, money, seconds } from "./dom.js"
import { begun } from "./run.js"

const OTHER = { model: "model", tool: "tool" }

// The rows of a run in the order in which they began: {path, name, depth, kind, begin, end, tokens, cost, step, state}.
export function rowsOf(run, plan) {
  const rows = [] // of each firing, with its calls behind it
  for (const node of run.nodes.values()) {
    for (const firing of run.firings(node)) rows.push(firingRows(run, plan, node, firing))
  }
  for (const failure of run.failures) {
    const begin = begun(run, plan, failure.path, Infinity)
    rows.push([{ path: failure.path, name: failure.path.join(" / "), depth: failure.path.length - 1, kind: "node", begin: begin ?? run.at, end: run.at, state: "failed", order: Infinity }])
  }
  // what holds others comes before them
  return rows.sort(([a], [b]) => a.begin - b.begin || a.depth - b.depth || a.order - b.order).flat()
}

function firingRows(run, plan, node, { step, parts }) {
  const { path } = node, end = step ? step.at : run.at, number = step ? step.number : Infinity
  const first = parts.length ? parts[0].number : number
  const begin = Math.min(begun(run, plan, path, Math.min(first, number)) ?? (parts.length ? parts[0].at : end), end)
  const inner = []
  let from = begin
  const replied = new Set(parts.filter((part) => part.kind === "step").map((part) => part.name))
  for (const part of parts) {
    const isCall = part.kind === "step" || (part.kind === "prompt" && !replied.has(part.name))
    if (isCall) inner.push(callRow(path, part, from))
    if (isCall || part.kind === "asked") from = part.at
  }
  const sum = (name) => inner.reduce((all, each) => all + each[name], 0)
  const isOpen = !step
  return [{ path, name: path.join(" / "), depth: path.length - 1, kind: "node", begin, end, tokens: sum("tokens"), cost: sum("cost"), step, order: number,
    state: isOpen ? (node.open.length ? "waiting" : "running") : step.failed ? "failed" : "done" }, ...inner]
}

function callRow(path, part, begin) {
  const value = part.kind === "prompt" ? part.reply : Object.values(part.output || {})[0]
  const usage = (value && value.usage) || {}, [kind] = part.name.split(":")
  const isFailed = Boolean(value && typeof value === "object" && value.failed)
  return { path, name: part.name, depth: path.length, kind: OTHER[kind] || "step", begin, end: part.at, tokens: (usage.input_tokens || 0) + (usage.output_tokens || 0),
    cost: usage.cost || 0, step: part, order: part.number, state: isFailed ? "failed" : "done" }
}

export class Timeline {
  // `chosen(row)` is called when a row is chosen.
  constructor(chosen) {
    this.rows = []
    this.list = new LongList("timeline", (at) => this.cells(this.rows[at]), (at) => chosen(this.rows[at]))
    this.list.place.classList.add("timeline")
    this.scale = make("div", { class: "heads timeline-heads", "aria-hidden": "true" })
    this.place = make("div", {}, this.scale, this.list.place,
      make("p", { class: "soft" }, "A firing begins with its last input; a call begins where the one before it ended."))
  }

  show(run, plan) {
    const key = `${run.count} ${run.at} ${run.status}`
    if (key === this.key) return
    this.key = key
    this.rows = rowsOf(run, plan)
    this.whole = Math.max(run.at, 1e-9)
    this.scale.replaceChildren(make("span", {}, "what"), make("span", { class: "ends" }, make("span", {}, "0"), make("span", {}, seconds(this.whole))),
      ...["time", "tokens", "money"].map((each) => make("span", { class: "number" }, each)))
    this.list.show(this.rows.length)
  }

  cells(row) {
    const bar = make("i", { class: `bar-of is-${row.kind} is-${row.state}` })
    bar.style.left = `${(100 * row.begin) / this.whole}%`
    bar.style.width = `${(100 * Math.max(0, row.end - row.begin)) / this.whole}%`
    const name = make("span", { title: row.name }, row.kind === "node" ? row.path[row.path.length - 1] : row.name, row.state === "done" ? "" : make("b", { class: `is-${row.state}` }, ` ${row.state}`))
    name.style.paddingLeft = `${row.depth * 0.8}rem`
    return [name, make("span", { class: "track" }, bar), make("span", { class: "number" }, seconds(row.end - row.begin)),
      make("span", { class: "number" }, row.tokens || ""), make("span", { class: "number" }, money(row.cost))]
  }
}
