// What is known of a run at a step, folded from its recorded steps and from what is not recorded.

// The path of a step's node: its name behind those of the cycles and graphs around it.
export function pathOf(frame, node) {
  const around = frame.filter((part) => typeof part === "string" && !part.startsWith("#"))
  if (around.length && around[around.length - 1] === node) around.pop()
  return [...around, node]
}

const empty = (path) => ({
  path, state: "pending", times: 0, rounds: 0, tokens: 0, cost: 0, at: null, firings: [], open: [],
})
const OWN = new Set(["done", "step", "asked", "prompt"])

// A run after its first steps; each step is added once.
export class Fold {
  constructor() {
    Object.assign(this, { count: 0, nodes: new Map(), edges: new Map(), status: "running", error: "",
      input: null, output: null, at: 0, tokens: 0, cost: 0, texts: {} })
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
    if (!node) this.nodes.set(key, (node = empty(path)))
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
    else if (step.kind === "resumed") Object.assign(this, { status: "running", error: "" })
    else if (step.kind === "ended") {
      Object.assign(this, { status: step.status, error: step.error })
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
    if (step.kind === "round") return Object.assign(node, { rounds: node.rounds + 1, at: step.at })
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

// Of each node: how often it ended, its tokens, money, and the time from its last input to its end.
export function costs(run, plan) {
  const found = []
  for (const node of run.nodes.values()) {
    let time = 0
    const scope = plan ? scopeOf(plan, node.path) : null
    for (const { step } of scope ? node.firings : []) {
      const inputs = inputsOf(run, node.path, scope, step.number)
      time += Math.max(0, step.at - Math.max(0, ...inputs.map((each) => each.at)))
    }
    found.push({ path: node.path, name: node.path.join(" / "), times: node.times, rounds: node.rounds,
      tokens: node.tokens, cost: node.cost, time })
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

// What came in before a firing: of each edge that leads to its node, the last payload of its round.
export function inputsOf(run, path, scope, before) {
  const found = []
  for (const edge of scope ? leadingTo(scope, path[path.length - 1]) : []) {
    const carried = run.edges.get(JSON.stringify([...path.slice(0, -1), edge.name])) || []
    let low = 0, high = carried.length // the steps are in order
    while (low < high) {
      const middle = (low + high) >> 1
      if (carried[middle].step.number < before) low = middle + 1
      else high = middle
    }
    const last = carried[low - 1]
    if (last) found.push({ edge, payload: last.payload, at: last.step.at })
    else if (edge.source === "@entry" && path.length === 1) found.push({ edge, payload: run.input, at: 0 })
  }
  return found
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
  constructor() {
    this.firings = new Map()
  }

  receive(kind, data) {
    if (kind === "started") {
      this.firings.set(data.activation, { path: pathOf(data.frame, data.node), frame: data.frame, state: "running",
        chunks: [] })
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
    if (step.kind === "done") this.firings.delete(step.activation)
    if (step.kind === "ended") this.firings.clear()
  }
}
