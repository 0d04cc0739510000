// What is known of a run at a step, folded from its recorded steps and from what is not recorded.

// The path of a step's node: its name behind those of the cycles and graphs around it.
export function pathOf(frame, node) {
  const around = frame.filter((part) => typeof part === "string" && !part.startsWith("#"))
  if (around.length && around[around.length - 1] === node) around.pop()
  return [...around, node]
}

const unrun = (path) => ({
  path, state: "pending", times: 0, rounds: 0, kept: 0, turned: 0, turning: new Map(), tokens: 0, cost: 0, at: null, firings: [], open: [],
})
const OWN = new Set(["done", "step", "asked", "prompt"])

// A run after its first steps; each step is added once.
export class Fold {
  constructor() {
    Object.assign(this, { count: 0, nodes: new Map(), edges: new Map(), status: "running", error: "",
      input: null, output: null, failures: [], at: 0, tokens: 0, cost: 0, texts: {} })
    this.waiting = new Map()
    this.parts = new Map()
    this.keys = new Map()
    this.used = {}
    this.most = { tokens: 0, cost: 0 }
  }

  node(step) {
    const own = step.frame.length ? `${step.frame.join("\n")}\n\n${step.node}` : step.node
    let node = this.keys.get(own)
    if (node) return node
    const path = pathOf(step.frame, step.node), key = JSON.stringify(path)
    node = this.nodes.get(key)
    if (!node) this.nodes.set(key, (node = unrun(path)))
    this.keys.set(own, node)
    return node
  }

  add(step) {
    this.count += 1
    if (step.at > this.at) this.at = step.at
    Object.assign(this.used, step.used)
    const counts = this.used.tokens || {}
    this.tokens = (counts.input_tokens || 0) + (counts.output_tokens || 0)
    this.cost = this.used.cost || 0
    if (step.kind === "run") this.input = step.output
    else if (step.kind === "resumed") Object.assign(this, { status: "running", error: "", failures: [] })
    else if (step.kind === "ended") {
      Object.assign(this, { status: step.status, error: step.error, failures: (step.failures || []).map(failureOf) })
      if (step.status === "done") this.output = (step.output || {}).output
    } else if (step.kind === "answer") {
      for (const id of Object.keys(step.output || {})) this.answered(id)
    }
    if (step.node) this.addToNode(step, this.node(step))
  }

  addToNode(step, node) {
    if (OWN.has(step.kind)) {
      node.tokens += Math.max(0, this.tokens - this.most.tokens)
      node.cost += Math.max(0, this.cost - this.most.cost)
      this.most.tokens = Math.max(this.most.tokens, this.tokens)
      this.most.cost = Math.max(this.most.cost, this.cost)
    }
    if (step.kind === "done") return this.end(step, node)
    if (step.kind === "round") return this.turn(step, node)
    if (!OWN.has(step.kind)) return
    if (step.kind === "prompt") Object.assign(this.texts, step.texts)
    if (!this.parts.has(step.activation)) this.parts.set(step.activation, { node, own: [] })
    this.parts.get(step.activation).own.push(step)
    if (step.kind !== "asked") {
      if (node.state !== "waiting") node.state = "running"
      return
    }
    this.waiting.set(step.question.id, { node, step })
    node.state = "waiting"
    node.open.push(step.question)
  }

  // A round has its number: those before it may not be kept any more.
  turn(step, node) {
    node.kept += 1
    node.turning.set(step.activation, step.output.round + 1)
    if (node.state !== "waiting") node.state = "running"
    this.countRounds(step, node)
  }

  countRounds(step, node) {
    let open = 0
    for (const rounds of node.turning.values()) open += rounds
    Object.assign(node, { rounds: node.turned + open, at: step.at })
  }

  answered(id) {
    const found = this.waiting.get(id)
    if (!found) return
    this.waiting.delete(id)
    found.node.open = found.node.open.filter((each) => each.id !== id)
    if (!found.node.open.length) found.node.state = "running"
  }

  end(step, node) {
    const known = this.parts.get(step.activation)
    this.parts.delete(step.activation)
    node.times += 1
    const tally = (this.used.cycles || {})[tallied(node.path)]
    if (tally || node.turning.has(step.activation)) {
      const counted = tally ? tally[1] : 0
      node.turned = Math.max(counted, node.turned + (node.turning.get(step.activation) || 0))
      node.turning.delete(step.activation)
      this.countRounds(step, node)
    }
    node.at = step.at
    if (node.state !== "waiting") node.state = step.failed ? "failed" : "done"
    node.firings.push({ step, parts: known ? known.own : [] })
    for (const name in step.output || {}) {
      const key = JSON.stringify([...node.path.slice(0, -1), name])
      const carried = this.edges.get(key), each = { step, payload: step.output[name] }
      if (carried) carried.push(each)
      else this.edges.set(key, [each])
    }
  }

  // The firings of a node that have not ended, after those that have.
  firings(node) {
    const open = []
    for (const [activation, { node: of, own }] of this.parts) {
      if (of === node) open.push({ step: null, activation, parts: own })
    }
    return [...node.firings, ...open]
  }

  // The messages of a prompt: one that was sent again is kept with the first prompt that has it.
  messages(prompt) {
    return prompt.messages.map((each) => this.texts[each.digest] || each)
  }
}

// The run after the first `upto` steps; `before`, of the same steps, is advanced where that is less.
export function folded(steps, upto, before = null) {
  const run = before && before.count <= upto ? before : new Fold()
  for (let at = run.count; at < upto; at += 1) run.add(steps[at])
  return run
}

// How many of the steps there are up to a number; numbers are missing of steps that are not shown to who looks.
export const placeOf = (steps, number) => steps.findLastIndex((each) => each.number <= number) + 1

// A failure as the end of a run has it; `node` is the activation of the firing that failed.
// The path of a node in a plan, also of one that is named without the cycles around it; null: it is not there.
export function located(scope, [first, ...rest]) {
  for (const node of scope.nodes) {
    const found = node.name !== first ? null : !rest.length ? [] : node.inside && located(node.inside, rest)
    if (found) return [first, ...found]
    const inside = node.inside && node.inside.kind === "cycle" ? located(node.inside, [first, ...rest]) : null
    if (inside) return [node.name, ...inside]
  }
  return null
}

function failureOf({ node, error, place }) {
  const parts = node.split("/"), name = parts.pop()
  return { path: pathOf(parts.filter((part) => !/^\d+$/.test(part)), name), activation: node, error, place }
}

// The name under which the rounds of a cycle are counted: its path without the cycles around it.
const tallied = (path) => path.filter((part, at) => at === path.length - 1 || !part.startsWith("cycle(")).join("/")

// The cycle around a node, or the node itself, of which not every round is kept; null: there is none.
export function partial(run, path) {
  for (let end = 1; end <= path.length; end += 1) {
    const node = run.nodes.get(JSON.stringify(path.slice(0, end)))
    if (node && node.kept < node.rounds) return node
  }
  return null
}

const STOPPED = { failed: "cancelled", cancelled: "cancelled", limited: "limited", parked: "cancelled" }

// The state of each node by its key, with those that no step says: of what is at work or was stopped (`due`: activations
// that are next, or were), of what holds something at work, of what was left out, and of what is not kept.
export function states(run, plan, due) {
  const found = new Map(), stopped = STOPPED[run.status], key = JSON.stringify
  const of = (path) => found.get(key(path)) || "pending"
  for (const [at, node] of run.nodes) found.set(at, stopped && ["running", "waiting"].includes(node.state) ? stopped : node.state)
  const mark = (path, state, isOver = () => true) => {
    for (let end = path.length; end > 0; end -= 1) if (end === path.length || isOver(of(path.slice(0, end)))) found.set(key(path.slice(0, end)), state)
  }
  for (const node of run.nodes.values()) mark(node.path, of(node.path), (state) => state === "pending") // what holds it has begun
  for (const node of run.nodes.values()) {
    const around = node.path.slice(0, -1)
    if (around.length && !(run.nodes.get(key(around)) || { times: 0 }).times) mark(around, of(node.path) === "waiting" || of(around) === "waiting" ? "waiting" : stopped || "running", (state) => !["waiting", "failed"].includes(state))
  }
  for (const activation of due) mark(failureOf({ node: activation }).path, stopped || "running", (state) => state !== "done")
  for (const { path } of run.failures) mark(path, "failed")
  // `mode` of a scope: open; ended: what has not run was left out; partial: what is not here may have run
  const visit = (scope, path, mode) => {
    const isDead = (edge) => edge.source !== "@entry" && !run.edges.has(key([...path, edge.name])) && ["done", "skipped"].includes(of([...path, ownerOf(scope, edge.source)]))
    const isOut = (node) => {
      const into = mode === "open" && scope.kind !== "cycle" ? enteringOf(scope, node).filter((edge) => edge.trigger) : []
      return mode !== "open" || (into.length > 0 && into.every(isDead))
    }
    for (let left = scope.nodes, before; left.length !== before;) { // what was left out leaves out what it alone leads to
      before = left.length
      left = left.filter((node) => of([...path, node.name]) === "pending")
      for (const node of left) if (isOut(node)) found.set(key([...path, node.name]), mode === "partial" ? "unknown" : "skipped")
    }
    for (const node of scope.nodes) {
      if (!node.inside) continue
      const own = [...path, node.name], state = of(own), isSeen = node.inside.nodes.some((each) => run.nodes.has(key([...own, each.name])))
      const isPartial = state === "unknown" || (state !== "skipped" && run.nodes.has(key(own)) && (partial(run, own) || (state === "done" && !isSeen)))
      visit(node.inside, own, isPartial ? "partial" : ["done", "skipped"].includes(state) ? "ended" : "open")
    }
  }
  if (plan) visit(plan, [], run.status === "done" ? "ended" : "open")
  return found
}

const isCycleOf = (name) => (node) => node.inside && node.inside.kind === "cycle" && node.inside.nodes.some((inner) => inner.name === name)

// The node of a scope from which an edge comes: it may come from inside of a cycle.
const ownerOf = (scope, name) => (scope.nodes.find((node) => node.name === name) || scope.nodes.find(isCycleOf(name)) || { name }).name

// The edges that lead to a node, or into the cycle that it is.
function enteringOf(scope, node) {
  const names = [node.name, ...(node.inside && node.inside.kind === "cycle" ? node.inside.nodes.map((each) => each.name) : [])]
  return names.flatMap((name) => leadingTo(scope, name)).filter((edge) => !names.includes(edge.source))
}

// When a firing had its last input: in a graph of its own at the earliest when that began.
export function begun(run, plan, path, before) {
  const scope = plan ? scopeOf(plan, path) : null
  if (!scope) return null
  const node = scope.nodes.find((each) => each.name === path[path.length - 1])
  let last = null
  for (const edge of node ? enteringOf(scope, node) : []) {
    const sent = lastSent(run, [...path.slice(0, -1), edge.name], before) || lastSent(run, [...path.slice(0, -1), ownerOf(scope, edge.source), edge.name], before)
    if (sent) last = Math.max(last || 0, sent.step.at)
    else if (edge.source === "@entry" && path.length === 1) last = last || 0
  }
  return last === null && path.length > 1 ? begun(run, plan, path.slice(0, -1), before) : last
}

// Of each node: how often it ended, its tokens, money, and the time from its last input to its end.
export function costs(run, plan) {
  const found = []
  for (const node of run.nodes.values()) {
    let time = 0
    for (const { step } of plan ? node.firings : []) time += Math.max(0, step.at - (begun(run, plan, node.path, step.number) ?? step.at))
    found.push({ path: node.path, name: node.path.join(" / "), times: node.times, rounds: node.rounds,
      tokens: node.tokens, cost: node.cost, time, isPartial: Boolean(partial(run, node.path)) })
  }
  return found
}

const entering = new WeakMap() // by scope, the edges by their targets

function leadingTo(scope, name) {
  if (!entering.has(scope)) {
    const found = new Map()
    for (const edge of scope.edges) {
      if (!found.has(edge.target)) found.set(edge.target, [])
      found.get(edge.target).push(edge)
    }
    entering.set(scope, found)
  }
  return entering.get(scope).get(name) || []
}

function lastSent(run, path, before) {
  const carried = run.edges.get(JSON.stringify(path)) || []
  let low = 0, high = carried.length // the steps are in order
  while (low < high) {
    const middle = (low + high) >> 1
    if (carried[middle].step.number < before) low = middle + 1
    else high = middle
  }
  return carried[low - 1]
}

// What came in before a firing: of each edge that leads to its node, the last payload of its round; of one that its cycle or its
// graph begins with, what came in there.
export function inputsOf(run, plan, path, before) {
  const around = path.slice(0, -1), name = path[path.length - 1], scope = plan ? scopeOf(plan, path) : null
  const found = []
  for (const edge of scope ? leadingTo(scope, name) : []) {
    const last = lastSent(run, [...around, edge.name], before) || lastSent(run, [...around, ownerOf(scope, edge.source), edge.name], before)
    if (last) found.push({ edge, payload: last.payload, at: last.step.at })
    else if (edge.source === "@entry" && !around.length) found.push({ edge, payload: run.input, at: 0 })
  }
  if (found.length || !scope || !around.length) return found
  if (scope.kind === "cycle") return inputsOf(run, plan, [...around.slice(0, -1), name], before)
  return leadingTo(scope, name).some((edge) => edge.source === "@entry") ? inputsOf(run, plan, around, before) : found
}

// The scope in which a path lies.
export function scopeOf(plan, path) {
  let scope = plan
  for (const name of path.slice(0, -1)) {
    const node = scope && scope.nodes.find((each) => each.name === name)
    scope = node ? node.inside : null
  }
  return scope
}

// What counts of a firing's chunks: its words, the fields of a structured reply in their place, thoughts, and notes.
export function replyOf(chunks) {
  const found = { text: "", fields: null, thoughts: "", notes: [] }
  for (const chunk of chunks) {
    if (chunk.kind === "output") found.fields = { ...chunk.fields }
    else if (chunk.kind === "reasoning") found.thoughts += chunk.text
    else if (chunk.kind !== "text") found.notes.push(chunk)
    else if (!found.fields) found.text += chunk.text
    // a call of a tool, or its result, ends a reply
    if (chunk.kind === "tool_call" || chunk.kind === "tool_result") found.fields = null
  }
  return found
}

// The chunks that are left when the last `count` do not count; tries and what they take back are never counted.
function takenBack(chunks, count) {
  const left = []
  for (const chunk of [...chunks].reverse()) {
    if (chunk.kind === "retry" || count <= 0) left.unshift(chunk)
    else count -= 1
  }
  return left
}

// What is not recorded: which firings are at work, and what they have said.
export class Live {
  constructor(ended = new Set()) {
    this.firings = new Map()
    this.ended = ended // activations that have ended: what is said late of them does not count
  }

  receive(kind, data) {
    if (kind === "started") {
      if (this.ended.has(data.activation)) return
      this.firings.set(data.activation, { path: pathOf(data.frame, data.node), frame: data.frame, state: "running",
        chunks: [], lost: data.lost || 0 })
      return
    }
    const known = this.firings.get(data.activation)
    if (!known) return
    if (kind === "failed" || kind === "skipped") Object.assign(known, { state: kind, error: data.error || "" })
    if (kind !== "chunk") return
    const chunk = data.chunk
    if (chunk.kind !== "reset") known.chunks.push(chunk)
    else known.chunks = takenBack(known.chunks, chunk.chunks || 0)
    if (chunk.kind === "reset" && chunk.inside) this.forgetInside([...data.frame, data.node])
  }

  // Nothing that was said inside of a firing counts.
  forgetInside(around) {
    for (const firing of this.firings.values()) {
      if (around.every((part, at) => firing.frame[at] === part)) firing.chunks = []
    }
  }

  // A step that ends a firing says all that was said of it.
  end(step) {
    if (step.kind === "done") this.firings.delete(step.activation), this.ended.add(step.activation)
    if (step.kind === "ended") this.firings.clear()
  }
}
