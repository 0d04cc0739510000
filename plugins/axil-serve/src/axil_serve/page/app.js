// The page: a list of runs, and a run with its graph, its steps and its questions.
import { GraphView, keyOf } from "./graph.js"
import { folded, inputsOf, Live, saidBy, scopeOf } from "./run.js"

// Every text goes in as text: nothing that a run says is ever read as markup.
function make(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value)
    else if (value !== false) made.setAttribute(key, value === true ? "" : value)
  }
  for (const each of inside.flat()) {
    if (each !== null && each !== undefined) made.append(each instanceof Node ? each : String(each))
  }
  return made
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "")
const block = (value) => make("pre", { tabindex: 0 }, shown(value))
const ago = (time) => new Date(time * 1000).toLocaleString()
const money = (cost) => (cost ? `$${cost.toFixed(4)}` : "")
const amounts = (node) => [
  node.times > 1 ? `${node.times}×` : "",
  node.rounds ? `${node.rounds} rounds` : "",
  node.tokens ? `${node.tokens} tok` : "",
  money(node.cost),
].filter(Boolean).join(" · ")

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

// ------------------------------------------------------------------------------- the server

class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

class Server {
  constructor(token) {
    this.token = token
    this.isExported = false
  }

  async ask(path, options = {}) {
    const headers = { ...options.headers, authorization: `Bearer ${this.token}` }
    if (options.body) headers["content-type"] = "application/json"
    const answer = await fetch(`/v1${path}`, { ...options, headers, cache: "no-store" })
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({}))
      throw new Refused(answer.status, told.error ? told.error.message : answer.statusText)
    }
    return answer
  }

  async get(path) {
    return (await this.ask(path)).json()
  }

  async post(path, body = {}) {
    return (await this.ask(path, { method: "POST", body: JSON.stringify(body) })).json()
  }

  // Calls `hear(kind, data)` for each event until the run has ended, and connects again behind the
  // last one when the connection breaks.
  async follow(runId, hear, signal) {
    let last = "", wait = 500
    while (!signal.aborted) {
      try {
        const headers = last ? { "last-event-id": last } : {}
        const answer = await this.ask(`/runs/${runId}/events`, { headers, signal })
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
        let rest = ""
        for (;;) {
          const { value, done } = await reader.read()
          if (done) break
          wait = 500
          const blocks = (rest + value).split("\n\n")
          rest = blocks.pop()
          for (const text of blocks) {
            const fields = {}
            for (const line of text.split("\n")) {
              const at = line.indexOf(": ")
              if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2)
            }
            if (fields.id) last = fields.id
            if (fields.data) hear(fields.event, JSON.parse(fields.data))
            if (fields.event === "end") return
          }
        }
      } catch (error) {
        if (signal.aborted || (error instanceof Refused && error.status < 500 && error.status !== 429)) return
      }
      await new Promise((done) => setTimeout(done, wait))
      wait = Math.min(wait * 2, 10000)
    }
  }
}

// A run that was written into the page.
class Exported {
  constructor(data) {
    this.data = data
    this.isExported = true
  }

  async get(path) {
    if (path.includes("/state")) {
      const at = decodeURIComponent(path.split("at=")[1])
      return { moment: this.data.states[at] || null }
    }
    return path.endsWith("/plan") ? { plan: this.data.plan } : this.data.run
  }

  async follow(runId, hear) {
    for (const step of this.data.steps) hear("step", step)
    hear("end", {})
  }
}

// --------------------------------------------------------------------------------- the page

const app = document.getElementById("app")
const said = make("div", { class: "quiet", role: "status", "aria-live": "polite" })
let server = null, me = null, leave = () => {}

function show(...inside) {
  app.replaceChildren(make("main", {}, inside), said)
}

function problem(error) {
  const line = make("p", { class: "is-failed", role: "alert" }, error.message || String(error))
  const main = app.querySelector("main")
  const old = app.querySelector("p[role=alert]")
  if (old) old.remove()
  if (main) main.prepend(line)
}

function askForToken() {
  const field = make("input", { type: "password", id: "token", autocomplete: "off", size: 50 })
  const form = make("form", { onsubmit: (event) => {
    event.preventDefault()
    sessionStorage.setItem("token", field.value.trim())
    begin()
  } }, make("label", { for: "token" }, "Token "), field, " ", make("button", {}, "Open"))
  show(make("h1", {}, "axil"), make("p", {}, "The server printed a token when it started."), form)
  field.focus()
}

// ----------------------------------------------------------------------------- list of runs

async function listRuns() {
  const body = make("tbody"), search = make("input", { type: "search", id: "search", placeholder: "search" })
  const count = make("span", { class: "soft" })
  let runs = []
  const draw = () => {
    const wanted = search.value.toLowerCase()
    const found = runs.filter((run) => JSON.stringify(run).toLowerCase().includes(wanted))
    count.textContent = `${found.length} of ${runs.length}`
    body.replaceChildren(...found.slice(0, 500).map((run) => make("tr", {},
      make("td", {}, make("a", { href: `#run=${encodeURIComponent(run.run_id)}` }, run.run_id)),
      make("td", {}, run.workflow),
      make("td", { class: `status is-${run.status}` }, run.status),
      make("td", {}, ago(run.touched)),
      make("td", {}, run.steps),
      make("td", {}, run.session),
      make("td", {}, run.forked_from),
    )))
  }
  const load = async () => {
    try {
      runs = (await server.get("/runs?limit=1000")).runs
      draw()
    } catch (error) {
      problem(error)
    }
  }
  search.addEventListener("input", draw)
  const head = ["run", "workflow", "status", "changed", "steps", "session", "forked from"]
  show(
    make("header", {}, make("h1", {}, "Runs"), count),
    await startForm(),
    make("div", { class: "bar" }, make("label", { for: "search" }, "Search "), search),
    make("div", { class: "scroll" }, make("table", {},
      make("thead", {}, make("tr", {}, head.map((name) => make("th", { scope: "col" }, name)))), body)),
  )
  await load()
  const timer = setInterval(() => document.hidden || load(), 3000)
  leave = () => clearInterval(timer)
}

async function startForm() {
  if (!me.rights.includes("run")) return null
  const { workflows } = await server.get("/workflows")
  if (!workflows.length) return null
  const which = make("select", { id: "which" }, workflows.map((each) => make("option", { value: each.name }, each.name)))
  const input = make("textarea", { id: "input", rows: 2 })
  const form = make("form", { onsubmit: async (event) => {
    event.preventDefault()
    try {
      const body = { workflow: which.value }
      if (input.value.trim()) body.input = parsed(input.value)
      location.hash = `run=${(await server.post("/runs", body)).run_id}`
    } catch (error) {
      problem(error)
    }
  } }, make("div", { class: "bar" }, make("label", { for: "which" }, "Workflow "), which, make("button", {}, "Start")),
  make("label", { for: "input" }, "Input: a text, or JSON"), input)
  return make("details", {}, make("summary", {}, "Start a run"), form)
}

// ------------------------------------------------------------------------------------- a run

class RunPage {
  constructor(runId, info, plan) {
    Object.assign(this, { runId, info, plan, steps: [], live: new Live(), chosen: null, dirty: false })
    this.head = make("header")
    this.questions = make("div")
    this.detail = make("aside", { "aria-label": "details", tabindex: -1 })
    this.stateView = make("div")
    this.slider = make("input", { type: "range", min: 0, max: 0, value: 0, id: "step", "aria-label": "step of the run",
      oninput: () => this.moved() })
    this.where = make("output", { for: "step", class: "soft" })
    const place = make("div", { class: "scroll graph" })
    const fold = (text, isOpen) => make("button", { type: "button", onclick: () => this.graph.all(isOpen) }, text)
    const bar = plan ? make("div", { class: "bar" }, fold("Unfold all", true), fold("Fold all", false),
      make("span", { class: "soft" }, "double click or f folds one")) : null
    show(
      server.isExported ? null : make("nav", {}, make("a", { href: "#" }, "← all runs")),
      this.head, this.questions,
      make("div", { class: "bar" }, make("label", { for: "step" }, "Step"), this.slider, this.where,
        make("button", { type: "button", onclick: () => this.toEnd() }, "Last")),
      make("div", { class: "run" }, make("section", { "aria-label": "graph" }, bar, place, this.stateView), this.detail),
    )
    this.graph = plan ? new GraphView(place, plan, (what) => this.choose(what)) : null
    if (!plan) this.list = place
    app.addEventListener("keydown", (event) => event.key === "Escape" && this.choose(null))
    this.draw()
  }

  get isAtEnd() {
    return this.upto === null || this.upto === undefined
  }

  hear(kind, data) {
    if (kind === "reset") this.steps = []
    else if (kind === "step") {
      this.steps.push(data)
      this.live.end(data)
      if (data.kind === "asked") said.textContent = `The run asks: ${data.question.text}`
      if (data.kind === "ended") said.textContent = `The run ended as ${data.status}`
    } else if (kind !== "end") this.live.hear(kind, data)
    if (!this.dirty) {
      this.dirty = true
      requestAnimationFrame(() => this.draw())
    }
  }

  toEnd() {
    this.upto = null
    this.draw()
  }

  moved() {
    const value = Number(this.slider.value)
    this.upto = value >= this.steps.length ? null : value
    this.draw()
  }

  draw() {
    this.dirty = false
    const upto = this.isAtEnd ? this.steps.length : this.upto
    this.slider.max = this.steps.length
    this.slider.value = upto
    const step = this.steps[upto - 1]
    this.where.textContent = step
      ? `${upto} of ${this.steps.length}: ${step.kind} ${step.activation} at ${step.at.toFixed(2)} s` : ""
    const run = this.run = folded(this.steps, upto)
    const states = new Map()
    for (const [key, node] of run.nodes) states.set(key, { state: node.state, told: amounts(node) })
    if (this.isAtEnd) {
      for (const firing of this.live.firings.values()) {
        const key = keyOf(firing.path), known = states.get(key)
        if (!known || known.state !== "waiting") states.set(key, { told: "", ...known, state: firing.state })
      }
    }
    this.states = states
    this.drawHead(run)
    this.drawQuestions(run)
    if (this.graph) this.graph.show(states, this.carried(run))
    else this.drawList(run)
    if (this.chosen) this.drawDetail()
    this.drawState(step, upto)
  }

  // How often each edge was live; -1: its node has ended and never sent anything along it.
  carried(run) {
    const found = new Map()
    for (const [key, all] of run.edges) found.set(key, all.length)
    const visit = (scope, path) => {
      for (const edge of scope.edges) {
        const key = JSON.stringify([...path, edge.name])
        const source = run.nodes.get(JSON.stringify([...path, edge.source]))
        if (edge.source === "@entry") found.set(key, run.input === null ? 0 : 1)
        else if (source && source.times && !found.has(key)) found.set(key, -1)
      }
      for (const node of scope.nodes) {
        if (!node.inside) continue
        visit(node.inside, [...path, node.name])
        // an edge that leaves a cycle is one of the scope around it, and is sent from inside
        for (const edge of scope.edges) {
          const inner = run.edges.get(JSON.stringify([...path, node.name, edge.name]))
          if (inner) found.set(JSON.stringify([...path, edge.name]), inner.length)
        }
      }
    }
    visit(this.plan, [])
    return found
  }

  drawHead(run) {
    const status = this.isAtEnd && this.info.status === "queued" && !this.steps.length ? "queued" : run.status
    const facts = [`${run.at.toFixed(2)} s`, run.tokens ? `${run.tokens} tokens` : "", money(run.cost)]
    const may = (right) => !server.isExported && me.rights.includes(right)
    const button = (text, path) => make("button", { type: "button", onclick: async () => {
      try {
        await server.post(`/runs/${this.runId}/${path}`)
        openRun(this.runId)
      } catch (error) {
        problem(error)
      }
    } }, text)
    const isOver = ["done", "failed", "cancelled", "limited"].includes(run.status)
    this.head.replaceChildren(
      make("h1", {}, `${this.info.workflow} `, make("span", { class: "soft" }, this.runId)),
      make("span", { class: `status is-${status}` }, status),
      make("span", { class: "soft" }, facts.filter(Boolean).join(" · ")),
      ...(may("run") && !isOver ? [button("Cancel", "cancel")] : []),
      ...(may("run") && isOver && run.status !== "done" ? [button("Resume", "resume")] : []),
      ...(run.error && run.status !== "paused" ? [make("p", { class: "is-failed" }, run.error)] : []),
    )
  }

  drawQuestions(run) {
    const open = []
    for (const node of run.nodes.values()) open.push(...node.open)
    const key = JSON.stringify(open)
    if (key === this.asked) return // what is being typed stays
    this.asked = key
    const mayAnswer = !server.isExported && me.rights.includes("answer")
    this.questions.replaceChildren(...open.map((question) => {
      const send = async (value) => {
        try {
          await server.post(`/runs/${this.runId}/answers`, { answers: { [question.id]: value } })
        } catch (error) {
          problem(error)
        }
      }
      const card = make("section", { class: "card", "aria-label": "question" }, make("p", {}, question.text))
      if (question.data && Object.keys(question.data).length) card.append(block(question.data))
      if (!mayAnswer) return card
      const button = (text, value) => make("button", { type: "button", onclick: () => send(value) }, text)
      if (question.kind === "approval") card.append(make("div", { class: "bar" }, button("Approve", true), button("Refuse", false)))
      else if ((question.options || []).length) {
        card.append(make("div", { class: "bar" }, question.options.map((option) => button(option, option))))
      } else {
        const field = make("input", { type: "text", "aria-label": "answer" })
        card.append(make("form", { class: "bar", onsubmit: (event) => {
          event.preventDefault()
          send(question.kind === "form" ? parsed(field.value) : field.value)
        } }, field, make("button", {}, "Answer")))
      }
      return card
    }))
  }

  drawList(run) {
    const rows = [...run.nodes.values()].map((node) => make("tr", {},
      make("td", {}, make("button", { type: "button", onclick: () => this.choose({ path: node.path, node: { name: node.path[node.path.length - 1] } }) },
        node.path.join(" / "))),
      make("td", {}, (this.states.get(keyOf(node.path)) || node).state),
      make("td", {}, amounts(node)),
    ))
    this.list.replaceChildren(make("table", {}, make("tbody", {}, rows)))
  }

  choose(what) {
    this.chosen = what
    if (this.graph) this.graph.choose(what && what.path ? what.path : null)
    this.detail.replaceChildren()
    this.told = ""
    if (what) this.drawDetail()
    if (what && matchMedia("(max-width: 800px)").matches) this.detail.scrollIntoView({ behavior: "smooth" })
  }

  drawDetail() {
    const what = this.chosen, opened = this.detail.querySelector("textarea")
    if (opened) return // an edit is under way
    const inside = what.edge ? this.edgeDetail(what) : this.nodeDetail(what)
    const told = inside.map((each) => (each ? each.textContent : "")).join("\n")
    if (told === this.told) return
    this.told = told
    this.detail.replaceChildren(...inside.filter(Boolean))
  }

  edgeDetail({ edge, scope }) {
    const own = this.run.edges.get(JSON.stringify([...scope, edge.name])) || []
    let carried = own
    for (const [key, all] of this.run.edges) {
      const path = JSON.parse(key)
      if (!own.length && path[path.length - 1] === edge.name && keyOf(path.slice(0, scope.length)) === keyOf(scope)) carried = all
    }
    return [
      make("h2", {}, `${edge.source} → ${edge.target}`),
      edge.label ? make("p", { class: "soft" }, edge.label) : null,
      ...(edge.source === "@entry" ? [make("h3", {}, "input"), block(this.run.input)] : []),
      ...carried.slice(-50).reverse().flatMap(({ step, payload }) => [
        make("h3", {}, `step ${step.number}, ${step.at.toFixed(2)} s`), block(payload)]),
      carried.length || edge.source === "@entry" ? null : make("p", {}, "It has carried nothing."),
    ]
  }

  nodeDetail({ path, node }) {
    const found = this.run.nodes.get(keyOf(path))
    const scope = this.plan ? scopeOf(this.plan, path) : null
    const config = node.config || {}
    const inside = [make("h2", {}, path.join(" / ")),
      make("p", { class: "soft" }, [node.type, node.description, found ? amounts(found) : ""].filter(Boolean).join(" · "))]
    if (config.instructions) inside.push(make("h3", {}, "instructions"), block(config.instructions))
    if (Object.keys(config).length) inside.push(make("details", {}, make("summary", {}, "settings"), block(config)))
    for (const firing of this.isAtEnd ? this.live.firings.values() : []) {
      if (keyOf(firing.path) !== keyOf(path)) continue
      const { text, fields, notes } = saidBy(firing.chunks)
      inside.push(make("h3", {}, firing.state), text ? block(text) : null, fields ? block(fields) : null,
        firing.error ? make("p", { class: "is-failed" }, firing.error) : null)
      for (const note of notes.slice(-20)) inside.push(block(note))
    }
    const firings = found ? found.firings : []
    for (const firing of firings.slice(-30).reverse()) inside.push(...this.firingDetail(path, scope, firing))
    if (firings.length > 30) inside.push(make("p", { class: "soft" }, `${firings.length - 30} earlier ones are not shown.`))
    if (!firings.length && !found) inside.push(make("p", {}, "It has not run."))
    return inside
  }

  firingDetail(path, scope, { step, parts, activation }) {
    const before = step ? step.number : Infinity
    const inside = [make("h3", {}, step ? `${step.activation}: step ${step.number}, ${step.at.toFixed(2)} s` : `${activation}: at work`)]
    for (const { edge, payload } of inputsOf(this.run, path, scope, before)) {
      inside.push(make("details", {}, make("summary", {}, `in: ${edge.source}`), block(payload)))
    }
    for (const part of parts) inside.push(...this.partDetail(part))
    if (!step) return inside
    for (const [name, payload] of Object.entries(step.output || {})) inside.push(make("div", { class: "soft" }, name), block(payload))
    if (Object.keys(step.wrote || {}).length) inside.push(make("details", { open: true }, make("summary", {}, "wrote to the state"), block(step.wrote)))
    if (!server.isExported && me.rights.includes("run")) inside.push(this.forkButton(step))
    return inside
  }

  partDetail(part) {
    if (part.kind === "asked") return [make("div", { class: "soft" }, "asked"), block(part.question.text)]
    const value = Object.values(part.output || {})[0]
    const inside = [make("div", { class: "soft" }, `${part.name} at ${part.at.toFixed(2)} s`)]
    if (part.name.startsWith("model:") && value && typeof value === "object") {
      if (value.text) inside.push(block(value.text))
      for (const call of value.tool_calls || []) inside.push(make("div", {}, `calls ${call.name}`), block(call.arguments))
      const usage = value.usage || {}
      inside.push(make("div", { class: "soft" },
        [value.model, `${usage.input_tokens || 0} in, ${usage.output_tokens || 0} out`, money(usage.cost)].filter(Boolean).join(" · ")))
      return inside
    }
    const content = value && typeof value === "object" && "content" in value ? value.content : value
    const isFailed = value && typeof value === "object" && value.failed
    inside.push(isFailed ? make("div", { class: "is-failed" }, "failed") : null, block(content))
    return inside
  }

  forkButton(step) {
    const place = make("div", { class: "bar" })
    const open = () => {
      const edited = make("textarea", { rows: 6, "aria-label": "output of the step, as JSON" })
      const first = JSON.stringify(Object.values(step.output || {})[0] ?? null, null, 2)
      edited.value = first
      const go = async () => {
        try {
          const body = { at: step.id }
          if (edited.value !== first) body.output = JSON.parse(edited.value)
          location.hash = `run=${(await server.post(`/runs/${this.runId}/fork`, body)).run_id}`
        } catch (error) {
          problem(error)
        }
      }
      place.replaceChildren(edited, make("button", { type: "button", onclick: go }, "Start the fork"),
        make("button", { type: "button", onclick: () => place.replaceChildren(button) }, "Back"))
      edited.focus()
    }
    const button = make("button", { type: "button", onclick: open }, "Fork from here")
    place.append(button)
    return place
  }

  // The state after the step that the slider is at, and what changed since the step before.
  async drawState(step, upto) {
    if (!this.plan || !step) return
    const kept = this.steps.slice(0, upto).filter((each) => each.kind === "done")
    const ids = kept.slice(-2).map((each) => each.id)
    const key = ids.join()
    if (key === this.stateOf || (this.isAtEnd && !["done", "failed", "paused", "limited", "cancelled"].includes(this.run.status))) return
    this.stateOf = key
    const known = (this.moments ??= new Map())
    for (const id of ids) {
      if (!known.has(id)) {
        const found = await server.get(`/runs/${this.runId}/state?at=${encodeURIComponent(id)}`).catch(() => ({ moment: null }))
        known.set(id, found.moment)
      }
    }
    if (this.stateOf !== key) return // the slider has moved meanwhile
    const now = known.get(ids[ids.length - 1]), before = ids.length > 1 ? known.get(ids[0]) : null
    if (!now) return
    const fields = Object.entries(now.state).filter(([name]) => !name.startsWith("@"))
    const rows = fields.map(([name, value]) => {
      const old = before ? before.state[name] : undefined
      const isChanged = before !== null && JSON.stringify(old) !== JSON.stringify(value)
      return make("tr", { class: isChanged ? "changed" : "" }, make("th", { scope: "row" }, name, isChanged ? " (changed)" : ""),
        make("td", {}, block(value), isChanged && old !== undefined ? make("details", {}, make("summary", {}, "before"), block(old)) : null))
    })
    const next = now.due.length ? [make("p", { class: "soft" }, `next: ${now.due.map((each) => each.activation).join(", ")}`)] : []
    this.stateView.replaceChildren(make("h2", {}, `State after step ${kept[kept.length - 1].number}`), ...next,
      rows.length ? make("table", {}, make("tbody", {}, rows)) : make("p", { class: "soft" }, "It has no fields."))
  }
}

async function openRun(runId) {
  const stop = new AbortController()
  leave()
  leave = () => stop.abort()
  const path = `/runs/${encodeURIComponent(runId)}`
  const [info, { plan }] = await Promise.all([server.get(path), server.get(`${path}/plan`)])
  const page = new RunPage(runId, info, plan)
  document.title = `axil: ${info.workflow} ${runId}`
  await server.follow(runId, (kind, data) => page.hear(kind, data), stop.signal)
}

async function route() {
  leave()
  leave = () => {}
  const wanted = new URLSearchParams(location.hash.slice(1))
  if (wanted.has("token")) { // not in the address bar, nor in the history
    sessionStorage.setItem("token", wanted.get("token"))
    wanted.delete("token")
    history.replaceState(null, "", `#${wanted}`)
    return begin()
  }
  try {
    if (wanted.get("run")) await openRun(wanted.get("run"))
    else await listRuns()
  } catch (error) {
    if (error.status === 401) return askForToken()
    if (!app.querySelector("main")) show()
    problem(error)
  }
}

async function begin() {
  const data = document.getElementById("exported")
  if (data) {
    server = new Exported(JSON.parse(data.textContent))
    return openRun(server.data.run.run_id)
  }
  server = new Server(sessionStorage.getItem("token") || "")
  try {
    if (location.hash.includes("token=")) return route()
    me = await server.get("/me")
  } catch (error) {
    return error.status === 401 ? askForToken() : (show(), problem(error))
  }
  await route()
}

if (!document.getElementById("exported")) window.addEventListener("hashchange", route)
begin()
