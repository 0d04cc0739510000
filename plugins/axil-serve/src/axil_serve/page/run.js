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

// The run after the first `upto` steps.
export function folded(steps, upto) {
  const run = { nodes: new Map(), edges: new Map(), status: "running", error: "", input: null,
    output: null, at: 0, tokens: 0, cost: 0 }
  const waiting = new Map(), at = (path) => {
    const key = JSON.stringify(path)
    if (!run.nodes.has(key)) run.nodes.set(key, empty(path))
    return run.nodes.get(key)
  }
  const parts = new Map()
  let tokens = 0, cost = 0, used = {}
  for (const step of steps.slice(0, upto)) {
    run.at = Math.max(run.at, step.at)
    used = { ...used, ...step.used }
    const counts = used.tokens || {}
    run.tokens = (counts.input_tokens || 0) + (counts.output_tokens || 0)
    run.cost = used.cost || 0
    if (step.kind === "run") run.input = step.output
    if (step.kind === "answer") {
      for (const id of Object.keys(step.output || {})) waiting.delete(id)
    }
    if (step.kind === "ended") Object.assign(run, { status: step.status, error: step.error })
    if (step.kind === "ended" && step.status === "done") run.output = (step.output || {}).output
    if (step.kind === "resumed") Object.assign(run, { status: "running", error: "" })
    if (!step.node) continue
    const path = pathOf(step.frame, step.node), node = at(path)
    if (["done", "step", "asked"].includes(step.kind)) {
      node.tokens += Math.max(0, run.tokens - tokens)
      node.cost += Math.max(0, run.cost - cost)
      tokens = Math.max(tokens, run.tokens)
      cost = Math.max(cost, run.cost)
    }
    const own = parts.get(step.activation) || []
    if (step.kind === "step" || step.kind === "asked") {
      parts.set(step.activation, [...own, step])
      node.state = "running"
    }
    if (step.kind === "asked") waiting.set(step.question.id, { node, step })
    if (step.kind === "round") Object.assign(node, { rounds: node.rounds + 1, at: step.at })
    if (step.kind === "done") {
      node.times += 1
      Object.assign(node, { state: "done", at: step.at })
      node.firings.push({ step, parts: own })
      parts.delete(step.activation)
      const scope = path.slice(0, -1), round = JSON.stringify(step.frame)
      for (const [name, payload] of Object.entries(step.output || {})) {
        const key = JSON.stringify([...scope, name])
        if (!run.edges.has(key)) run.edges.set(key, [])
        run.edges.get(key).push({ step, payload, round })
      }
    }
  }
  for (const [activation, own] of parts) {
    const node = at(pathOf(own[0].frame, own[0].node))
    node.firings.push({ step: null, activation, parts: own })
  }
  for (const { node, step } of waiting.values()) {
    node.state = "waiting"
    node.open.push(step.question)
  }
  return run
}

// What came in before a firing: of each edge that leads to its node, the last payload of its round.
export function inputsOf(run, path, scope, before) {
  const found = []
  for (const edge of scope ? scope.edges : []) {
    if (edge.target !== path[path.length - 1]) continue
    const carried = run.edges.get(JSON.stringify([...path.slice(0, -1), edge.name])) || []
    const last = carried.filter((each) => each.step.number < before).pop()
    if (last) found.push({ edge, payload: last.payload })
    else if (edge.source === "@entry") found.push({ edge, payload: run.input })
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

// What counts of a firing's chunks: its words, the fields of a structured reply in their place, and notes.
export function saidBy(chunks) {
  const found = { text: "", fields: null, notes: [] }
  for (const chunk of chunks) {
    if (chunk.kind === "output") found.fields = { ...chunk.fields }
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

  hear(kind, data) {
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
