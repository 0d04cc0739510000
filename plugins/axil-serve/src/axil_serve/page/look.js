// One run: its graph, steps, costs, state and questions.
import { areMessages, block, button, callShown, carried, details, difference, legible, LongList, make, money, parsed, pictured, seconds, table } from "./dom.js"
import { GraphView, keyOf } from "./graph.js"
import { markdownOf, save } from "./report.js"
import { costs, folded, inputsOf, Live, partial, replyOf, scopeOf, states } from "./run.js"
import { Timeline } from "./timeline.js"

export const page = { server: null, me: null, app: null, status: null, open: null, again: null }

export const OVER = ["done", "failed", "cancelled", "limited", "parked"]
const SHOWN_FIRINGS = 30
const SHOWN_COSTS = 200
const WAIT = 200
const SILENT = 1000 // milliseconds without a step
const may = (right) => !page.server.isExported && page.me.rights.includes(right)

const amounts = (node, part = null) => [
  part && part !== node ? `${node.times}× kept` : node.times > 1 ? `${node.times}×` : "",
  node.rounds ? `${node.rounds} rounds` : "",
  node.tokens ? `${node.tokens} tok` : "",
  money(node.cost),
].filter(Boolean).join(" · ")

// What keys do on a page; null: nothing of its own. What `handle` returns does not count: a handler
// that returns false would take every key from the browser.
export function onKeys(handle) {
  page.app.onkeydown = handle && ((event) => {
    handle(event)
  })
}

export function show(...inside) {
  page.status.textContent = "" // of what was shown before
  page.app.replaceChildren(make("main", {}, inside), page.status)
}

export function problem(error) {
  const line = make("p", { class: "is-failed", role: "alert" }, error.message || String(error))
  const main = page.app.querySelector("main")
  const old = page.app.querySelector("p[role=alert]")
  if (old) old.remove()
  if (main) main.prepend(line)
  line.scrollIntoView({ block: "nearest" })
}

// Say that the connection is lost, or that it is there again.
export function lost(isLost) {
  const main = page.app.querySelector("main"), old = page.app.querySelector(".lost")
  if (!isLost && old) old.remove()
  if (isLost && !old && main) main.prepend(make("p", { class: "notice lost", role: "alert" }, "The connection to the server is lost: what is shown may be old. Connecting again …"))
}

// A table of what each node used, the largest first; each row has a bar.
export function costTable(found, choose) {
  const most = (name) => Math.max(0, ...found.map((each) => each[name]))
  const by = most("cost") ? "cost" : most("tokens") ? "tokens" : "time"
  const largest = most(by) || 1
  const number = (text) => make("td", { class: "number" }, text)
  const sorted = [...found].sort((a, b) => b[by] - a[by])
  const rows = sorted.slice(0, SHOWN_COSTS).map((each) => [
    make("td", {}, choose ? button(each.name, () => choose(each), { class: "link" }) : each.name),
    number(each.isPartial ? `${each.times} kept` : each.times || ""), number(each.tokens || ""), number(money(each.cost)), number(each.time ? seconds(each.time) : ""),
    make("td", {}, make("meter", { value: each[by], max: largest, "aria-label": `${by} of ${each.name}` })),
  ])
  const more = sorted.length - rows.length
  return make("div", {}, table(["node", "times", "tokens", "money", "time", `part of the ${by}`], rows),
    more > 0 ? make("p", { class: "soft" }, `${more} more nodes, which used less, are not shown.`) : null)
}

// The fields of two states: those that differ as differences, the others alone.
export function stateTable(now, before, word = "changed") {
  const names = [...new Set([...Object.keys(before || {}), ...Object.keys(now)])].filter((name) => !name.startsWith("@"))
  if (!names.length) return make("p", { class: "soft" }, "The state has no fields.")
  return make("table", {}, make("tbody", {}, names.map((name) => {
    const changed = before ? difference(before[name], now[name]) : null
    return make("tr", { class: changed ? "changed" : "" }, make("th", { scope: "row" }, name, changed ? ` (${word})` : ""),
      make("td", {}, changed || block(now[name])))
  })))
}

export class RunPage {
  constructor(runId, info, plan, layout) {
    Object.assign(this, { runId, info, plan, steps: [], live: new Live(), chosen: null, isDue: false, upto: null, base: null,
      view: "graph", run: null, moments: new Map(), due: [] })
    this.head = make("header")
    this.questions = make("div")
    this.detail = make("aside", { "aria-label": "details", tabindex: -1 })
    this.stateView = make("div")
    this.slider = make("input", { type: "range", min: 0, max: 0, value: 0, id: "step", oninput: () => this.moved() })
    this.where = make("output", { for: "step", class: "soft" })
    const place = make("div", { class: "scroll graph", role: "region", "aria-label": "graph of the run", tabindex: 0 })
    this.timeline = new Timeline((row) => (row.step ? this.goTo(row.step.number - 1) : this.choose({ path: row.path, node: this.nodeAt(row.path) })))
    this.views = { graph: this.graphView(place), timeline: this.timeline.place, steps: this.stepsView(), costs: make("div", { class: "scroll" }) }
    this.tabs = Object.keys(this.views).map((name) => button(name[0].toUpperCase() + name.slice(1), () => this.turn(name),
      { "aria-pressed": "false" }))
    show(
      page.server.isExported ? null : make("nav", {}, make("a", { href: "#" }, "← all runs")),
      this.head, this.questions,
      make("div", { class: "bar" }, make("label", { for: "step" }, "Step"), this.slider, this.where,
        button("Last", () => this.toEnd())),
      make("div", { class: "run" }, make("section", { "aria-label": "run" }, make("div", { class: "bar" }, this.tabs),
        Object.values(this.views), this.stateView), this.detail),
    )
    if (plan) {
      this.graph = new GraphView(place, (what) => this.choose(what),
        (open, path) => page.server.get(`/runs/${encodeURIComponent(runId)}/layout?open=${encodeURIComponent(JSON.stringify(open))}`, path).catch(problem))
      this.graph.use(plan, layout)
    } else this.list = place
    this.sources = plan ? edgeKeys(plan, []) : []
    onKeys((event) => event.key === "Escape" && this.choose(null))
    this.turn("graph")
    this.draw()
  }

  graphView(place) {
    const act = (text, act, label) => button(text, act, label ? { "aria-label": label } : {})
    const find = make("input", { type: "search", placeholder: "find a node", "aria-label": "find a node", onchange: () => {
      const box = this.graph.boxes.find((each) => each.path.join("/").toLowerCase().includes(find.value.toLowerCase()))
      if (box && find.value) this.graph.reveal(box.key, true)
    } })
    const bar = this.plan ? make("div", { class: "bar" }, act("Unfold all", () => this.graph.all(true)), act("Fold all", () => this.graph.all(false)),
      act("+", () => this.graph.zoom(this.graph.scale * 1.4), "larger"), act("−", () => this.graph.zoom(this.graph.scale / 1.4), "smaller"),
      act("Fit", () => this.graph.fit()), find, make("span", { class: "soft" }, "double click or f folds one, arrow keys move")) : null
    return make("div", {}, bar, place)
  }

  stepsView() {
    const filter = make("input", { type: "search", placeholder: "find in steps", "aria-label": "find in steps", oninput: () => {
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.filter(filter.value), WAIT)
    } })
    this.found = null
    this.stepList = new LongList("steps", (at) => {
      const step = this.steps[this.found ? this.found[at] : at]
      return [make("span", { class: "number" }, step.number), make("span", {}, seconds(step.at)), make("span", {}, step.kind),
        make("span", {}, step.activation), make("span", { class: "soft" }, JSON.stringify(step.output ?? "").slice(0, 120))]
    }, (at) => this.goTo(this.found ? this.found[at] : at))
    return make("div", {}, make("div", { class: "bar" }, filter), this.stepList.place)
  }

  filter(text) {
    const wanted = text.toLowerCase()
    this.found = wanted ? [...this.steps.keys()].filter((at) => JSON.stringify(this.steps[at]).toLowerCase().includes(wanted)) : null
    this.stepList.place.scrollTop = 0
    this.stepList.show(this.found ? this.found.length : this.steps.length)
  }

  // Show the run after a step, with the firing that it belongs to.
  goTo(at) {
    this.upto = at + 1 >= this.steps.length ? null : at + 1
    const step = this.steps[at]
    this.draw()
    const found = step.node ? this.run.node(step) : null
    if (found) this.choose({ path: found.path, node: this.nodeAt(found.path) })
  }

  nodeAt(path) {
    const scope = this.plan ? scopeOf(this.plan, path) : null, name = path[path.length - 1]
    return (scope && scope.nodes.find((each) => each.name === name)) || { name }
  }

  turn(name) {
    this.view = name
    for (const [each, made] of Object.entries(this.views)) made.hidden = each !== name
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.textContent.toLowerCase() === name))
    if (this.run) this.draw()
  }

  get isQueued() {
    return this.info.status === "queued" && !this.live.firings.size && this.steps.length < 2
  }

  get isAtEnd() {
    return this.upto === null
  }

  receive(kind, data) {
    if (kind === "reset") Object.assign(this, { steps: [], run: null, live: new Live() })
    else if (kind === "connected") this.live = new Live(this.live.ended) // what is at work comes again
    else if (kind === "step") {
      this.steps.push(data)
      this.live.end(data)
      if (data.number > this.info.steps) this.announce(data)
    } else if (kind !== "end") this.live.receive(kind, data)
    if (this.isDue) return
    this.isDue = true
    requestAnimationFrame(() => this.draw())
  }

  // Say what happens now; what had happened before the page was opened is no news.
  announce(step) {
    if (step.kind === "asked") page.status.textContent = `The run asks: ${legible(step.question.text)}`
    if (step.kind === "ended" && step.status !== "paused") page.status.textContent = `The run ended as ${step.status}`
  }

  toEnd() {
    this.upto = null
    this.draw()
  }

  moved() {
    const value = Number(this.slider.value)
    this.upto = value >= this.steps.length ? null : value
    if (this.isDue) return
    this.isDue = true
    requestAnimationFrame(() => this.draw())
  }

  draw() {
    this.isDue = false
    const upto = this.isAtEnd ? this.steps.length : this.upto
    this.slider.max = this.steps.length
    this.slider.value = upto
    const step = this.steps[upto - 1]
    this.where.textContent = step ? `${upto} of ${this.steps.length}: ${step.kind === "ended" ? step.status : step.kind} ${step.activation} at ${seconds(step.at)}` : ""
    this.slider.setAttribute("aria-valuetext", this.where.textContent)
    const run = this.run = folded(this.steps, upto, this.run)
    this.states = this.statesOf(run)
    if (this.isAtEnd) this.askForDue(run)
    this.drawHead(run)
    this.drawQuestions(run)
    if (this.view === "timeline") this.timeline.show(run, this.plan)
    if (this.view === "steps" && !this.found) this.stepList.show(this.steps.length)
    if (this.view === "costs") this.drawCosts(run)
    if (this.view === "graph" && this.graph) this.graph.show(this.states, this.carried(run))
    else if (this.view === "graph") this.drawList(run)
    if (this.chosen) this.drawDetail()
    else this.drawOverview(run)
    this.drawState(step, upto)
  }

  // The state of each node, and what it used in words; a state that is not "done" is a word, too.
  statesOf(run) {
    const found = states(run, this.plan, this.isAtEnd ? this.due : [])
    if (this.isAtEnd) {
      for (const { path, state } of this.live.firings.values()) if (found.get(keyOf(path)) !== "waiting") found.set(keyOf(path), state)
    }
    const shown = new Map()
    for (const [key, state] of found) {
      const node = run.nodes.get(key), word = state === "unknown" ? "not kept" : state
      shown.set(key, { state, note: [["done", "pending"].includes(state) ? "" : word, node ? amounts(node, partial(run, node.path)) : ""].filter(Boolean).join(" · ") })
    }
    return shown
  }

  // What the end of a run has stopped is asked for once; so is what is at work in a run of another process, when it is silent.
  askForDue(run) {
    const last = this.steps[this.steps.length - 1]
    if (!this.plan || !last || ["done", "paused"].includes(run.status) || this.dueOf === last.id) return
    const isEnded = last.kind === "ended"
    if (!isEnded && (this.live.firings.size || run.waiting.size || this.isQueued)) return
    Object.assign(this, { dueOf: last.id, due: [] })
    setTimeout(async () => {
      const moment = this.dueOf === last.id && (isEnded || !this.live.firings.size) && this.slider.isConnected ? await this.moment(last.id) : null
      if (this.dueOf !== last.id || !moment) return
      this.due = moment.due.map((each) => each.activation)
      this.draw()
    }, isEnded ? 0 : SILENT)
  }

  // How often each edge was live; -1: its node has ended and never sent anything along it.
  carried(run) {
    const found = new Map()
    for (const [key, all] of run.edges) found.set(key, all.length)
    for (const { key, source, isEntry, inner } of this.sources) {
      if (isEntry) found.set(key, run.input === null ? 0 : 1)
      else if (!found.has(key)) {
        const own = run.nodes.get(source)
        const sent = inner.map((each) => run.edges.get(each)).find(Boolean)
        if (sent) found.set(key, sent.length)
        else if (own && own.times) found.set(key, -1)
      }
    }
    return found
  }

  drawHead(run) {
    const status = this.isAtEnd && this.isQueued ? "queued" : run.status
    const facts = [seconds(run.at), run.tokens ? `${run.tokens} tokens` : "", money(run.cost)].filter(Boolean).join(" · ")
    const cut = [...run.nodes.values()].filter((node) => node.kept < node.rounds)
    const key = JSON.stringify([status, facts, run.error, cut.map((node) => [node.kept, node.rounds])])
    if (key === this.headOf) return
    this.headOf = key
    const act = (text, path) => button(text, async () => {
      try {
        await page.server.post(`/runs/${this.runId}/${path}`)
        page.open(this.runId)
      } catch (error) {
        problem(error)
      }
    })
    const isOver = OVER.includes(run.status)
    this.head.replaceChildren(
      make("h1", {}, `${this.info.workflow} `, make("span", { class: "soft" }, this.runId)),
      make("span", { class: `status is-${status}` }, status),
      make("span", { class: "soft" }, facts),
      ...(this.info.forked_from && !page.server.isExported ? [make("a", {
        href: `#compare=${encodeURIComponent(this.info.forked_from)},${encodeURIComponent(this.runId)}` }, "compare with the run it was forked from")] : []),
      ...(may("run") && !isOver ? [act("Cancel", "cancel")] : []),
      ...(may("run") && isOver && run.status !== "done" ? [act("Resume", "resume")] : []),
      ...(may("run") ? [button("Run again …", () => {
        page.again = { workflow: this.info.workflow, input: this.run.input }
        location.hash = ""
      })] : []),
      button("Markdown", () => save(`${this.runId}.md`, "text/markdown", markdownOf(this.info, this.run))),
      button("JSON", () => save(`${this.runId}.json`, "application/json", JSON.stringify({ run: this.info, steps: this.steps }, null, 1))),
      ...(may("run") && isOver ? [this.removeButton()] : []),
      ...(run.error && run.status !== "paused" ? [make("p", { class: "is-failed" }, run.error)] : []),
      ...cut.map((node) => make("p", { class: "notice" }, `Of the ${node.rounds} rounds of ${node.path.join(" / ")} the journal keeps ${node.kept} one by one: `
        + "what the others said is not here. Rounds, tokens, money and time count all of them.")),
    )
  }

  removeButton() {
    const made = button("Remove", async () => {
      if (made.textContent === "Remove") return (made.textContent = "Remove it with its files?")
      try {
        await page.server.ask(`/runs/${encodeURIComponent(this.runId)}`, { method: "DELETE" })
        location.hash = ""
      } catch (error) {
        problem(error)
      }
    })
    return made
  }

  drawQuestions(run) {
    const open = []
    for (const { step } of run.waiting.values()) open.push({ ...step.question, by: step.activation })
    const key = JSON.stringify(open)
    if (key === this.asked) return // what is being typed stays
    this.asked = key
    this.questions.replaceChildren(...open.map((question) => questionCard(question, async (value) => {
      try {
        await page.server.post(`/runs/${this.runId}/answers`, { answers: { [question.id]: value } })
      } catch (error) {
        problem(error)
      }
    })))
  }

  drawList(run) {
    const rows = [...run.nodes.values()].map((node) => [
      make("td", {}, button(node.path.join(" / "), () => this.choose({ path: node.path, node: this.nodeAt(node.path) }))),
      (this.states.get(keyOf(node.path)) || node).state, amounts(node)])
    this.list.replaceChildren(table(["node", "state", "used"], rows))
  }

  drawCosts(run) {
    const key = `${run.count}`
    if (key === this.costsOf) return
    this.costsOf = key
    this.views.costs.replaceChildren(costTable(costs(run, this.plan), (each) => this.choose({ path: each.path, node: this.nodeAt(each.path) })),
      make("p", { class: "soft" }, "Time is from the last input of a firing to its end. A node that holds a graph has the time of what is inside."))
  }

  choose(what) {
    this.chosen = what
    if (this.graph) this.graph.choose(what && what.path ? what.path : null)
    this.detail.replaceChildren()
    this.detailOf = ""
    if (what) this.drawDetail()
    else if (this.run) this.drawOverview(this.run)
    if (what && matchMedia("(max-width: 800px)").matches) this.detail.scrollIntoView({ behavior: "smooth" })
  }

  // What is shown while no node is chosen: what the run received, and what came of it.
  drawOverview(run) {
    const key = `overview ${run.input === null} ${run.status} ${run.failures.length}`
    if (key === this.detailOf) return
    this.detailOf = key
    const parts = [["Input", run.input], ["Output", run.output]].filter(([, value]) => value !== null && value !== undefined)
    this.detail.replaceChildren(...run.failures.flatMap((each) => [make("h2", {}, button(each.path.join(" / "), () => this.choose({ path: each.path, node: this.nodeAt(each.path) }), { class: "link" }), " failed"),
      ...failureDetail(each)]), this.hint(), ...parts.flatMap(([name, value]) => [make("h2", {}, name), carried(value)]).flat())
  }

  hint() {
    return make("p", { class: "soft" }, "Choose a node to see what came in, what was asked and answered, and what it cost; an edge to see what it carried.")
  }

  drawDetail() {
    const what = this.chosen
    if (this.detail.querySelector("textarea")) return // an edit is under way
    const firings = what.path ? this.run.nodes.get(keyOf(what.path)) : null
    const live = [...this.live.firings.values()].filter((each) => what.path && keyOf(each.path) === keyOf(what.path))
    const key = JSON.stringify([what.edge ? this.run.count : 0, this.run.status, what.path && (this.states.get(keyOf(what.path)) || {}).state, firings && this.run.firings(firings).map((each) => each.parts.length),
      live.map((each) => [each.chunks.length, each.chunks[each.chunks.length - 1], each.state])])
    if (key === this.detailOf) return
    this.detailOf = key
    this.detail.replaceChildren(...(what.edge ? this.edgeDetail(what) : this.nodeDetail(what)).flat(Infinity).filter(Boolean))
  }

  edgeDetail({ edge, scope }) {
    let sent = this.run.edges.get(keyOf([...scope, edge.name])) || []
    for (const [key, all] of sent.length ? [] : this.run.edges) { // it leaves a cycle: it is sent from inside
      const path = JSON.parse(key)
      if (path[path.length - 1] === edge.name && keyOf(path.slice(0, scope.length)) === keyOf(scope)) sent = all
    }
    const isEntry = edge.source === "@entry"
    return [
      make("h2", {}, `${edge.source} → ${edge.target}`),
      edge.label ? make("p", { class: "soft" }, edge.label) : null,
      ...(isEntry ? [make("h3", {}, "input"), carried(this.run.input)] : []),
      ...sent.slice(-50).reverse().flatMap(({ step, payload }) => [make("h3", {}, `step ${step.number}, ${seconds(step.at)}`), carried(payload)]),
      sent.length > 50 ? make("p", { class: "soft" }, `${sent.length - 50} earlier ones are not shown.`) : null,
      sent.length || isEntry ? null : make("p", {}, "It has carried nothing."),
    ]
  }

  nodeDetail({ path, node }) {
    const found = this.run.nodes.get(keyOf(path))
    const scope = this.plan ? scopeOf(this.plan, path) : null
    const config = node.config || {}
    const inside = [make("h2", {}, path.join(" / ")),
      make("p", { class: "soft" }, [node.type, node.description, found ? amounts(found) : ""].filter(Boolean).join(" · "))]
    if (config.instructions) inside.push(make("h3", {}, "instructions"), block(config.instructions))
    if (Object.keys(config).length) inside.push(details("settings", block(config)))
    let live = 0
    for (const firing of this.isAtEnd ? this.live.firings.values() : []) {
      if (keyOf(firing.path) !== keyOf(path)) continue
      live += 1
      const { text, fields, thoughts, notes } = replyOf(firing.chunks)
      inside.push(make("h3", {}, firing.state), thoughts ? details("reasoning", block(thoughts)) : null, text ? block(text) : null, fields ? block(fields) : null,
        firing.error ? make("p", { class: "is-failed" }, firing.error) : null)
      if (firing.lost) inside.push(make("p", { class: "soft" }, `What it showed first is not kept: ${firing.lost} parts.`))
      for (const note of notes.slice(-20)) inside.push(note.kind === "part" ? pictured(note.part) : block(note))
    }
    const failures = this.run.failures.filter((each) => keyOf(each.path) === keyOf(path))
    for (const each of failures) {
      inside.push(make("h3", {}, "failed ", make("span", { class: "soft" }, each.activation)), ...failureDetail(each))
      for (const { edge, payload } of inputsOf(this.run, path, scope, Infinity)) inside.push(details(`in: ${edge.source === "@entry" ? "input" : edge.source}`, carried(payload)))
    }
    const firings = found ? this.run.firings(found) : []
    const part = partial(this.run, path)
    if (part) inside.push(make("p", { class: "notice" }, `Of the ${part.rounds} rounds of ${part.path.join(" / ")} ${part.kept} are kept: the firings of the others are not here.`))
    for (const firing of firings.slice(-SHOWN_FIRINGS).reverse()) inside.push(...this.firingDetail(path, scope, firing))
    if (firings.length > SHOWN_FIRINGS) {
      inside.push(make("p", { class: "soft" }, `${firings.length - SHOWN_FIRINGS} earlier ones are not shown: move the slider back.`))
    }
    const state = (this.states.get(keyOf(path)) || { state: "pending" }).state
    if (!firings.length && !failures.length && !live && SAID[state]) inside.push(make("p", {}, SAID[state]))
    return inside
  }

  firingDetail(path, scope, { step, parts, activation }) {
    const before = step ? step.number : Infinity
    const inside = [make("h3", {}, step ? `Step ${step.number}, at ${seconds(step.at)} ` : "At work ", make("span", { class: "soft" }, step ? step.activation : activation))]
    for (const { edge, payload } of inputsOf(this.run, path, scope, before)) inside.push(details(`in: ${edge.source === "@entry" ? "input" : edge.source}`, carried(payload)))
    const prompted = new Map(parts.filter((part) => part.kind === "prompt").map((part) => [part.name, part]))
    for (const part of parts) {
      if (part.kind === "prompt" && parts.some((each) => each.kind === "step" && each.name === part.name)) continue
      if (prompted.has(part.name)) inside.push(this.promptDetail(prompted.get(part.name)))
      inside.push(...this.partDetail(part))
    }
    if (!step) return inside
    for (const [name, payload] of Object.entries(step.output || {})) inside.push(make("div", { class: "soft" }, name), carried(payload))
    if (Object.keys(step.wrote || {}).length) inside.push(make("details", { open: true }, make("summary", {}, "wrote to the state"), block(step.wrote)))
    if (may("run")) inside.push(this.forkButton(step))
    return inside
  }

  // What a model was asked; of a message whose text was not kept its length and digest.
  promptDetail(prompt) {
    const messages = this.run.messages(prompt).flatMap((each) => [make("div", { class: "soft" }, each.role || ""),
      each.content !== undefined || each.tool_calls ? block(each.content || each.tool_calls)
        : make("p", { class: "soft" }, `${each.characters} characters, not kept (digest ${each.digest})`)])
    const request = prompt.request && Object.keys(prompt.request).length ? details("tools and settings", block(prompt.request)) : null
    return details(`prompt of ${prompt.name}: ${prompt.messages.length} messages`, messages, request)
  }

  partDetail(part) {
    if (part.kind === "asked") return [make("div", { class: "soft" }, "asked"), block(legible(part.question.text))]
    const value = part.kind === "prompt" ? part.reply : Object.values(part.output || {})[0]
    const inside = [make("div", { class: "soft" }, `${part.name} at ${seconds(part.at)}`)]
    const isObject = value && typeof value === "object"
    if (part.name.startsWith("model:") && isObject) {
      for (const each of value.parts || []) inside.push(details(each.type, block(each.text || each)))
      if (value.text) inside.push(block(value.text))
      for (const call of value.tool_calls || []) inside.push(make("div", {}, `calls ${call.name}`), block(call.arguments))
      const usage = value.usage || {}
      inside.push(make("div", { class: "soft" },
        [value.model, `${usage.input_tokens || 0} in, ${usage.output_tokens || 0} out`, money(usage.cost)].filter(Boolean).join(" · ")))
      return inside
    }
    if (isObject && value.failed) inside.push(make("div", { class: "is-failed" }, "failed"))
    inside.push(block(isObject && "content" in value ? value.content : value))
    return inside
  }

  forkButton(step) {
    const place = make("div", { class: "bar" })
    const open = () => {
      const output = outputOf(step), isSaid = areMessages(output) && output.length === 1
      const isText = typeof output === "string" || isSaid
      const edited = make("textarea", { rows: 6, "aria-label": isText ? "output of the step" : "output of the step, as JSON" })
      const first = isSaid ? output[0].content : isText ? output : JSON.stringify(output, null, 2)
      edited.value = first
      const routed = make("input", { type: "checkbox", id: `routed-${step.id}` })
      routed.checked = true
      const go = async () => {
        try {
          const body = { at: step.id }
          if (edited.value !== first) {
            const given = isSaid ? [{ ...output[0], content: edited.value }] : isText ? edited.value : JSON.parse(edited.value)
            Object.assign(body, { output: given, is_routed: routed.checked })
          }
          location.hash = `run=${(await page.server.post(`/runs/${this.runId}/fork`, body)).run_id}`
        } catch (error) {
          problem(error)
        }
      }
      place.replaceChildren(edited, make("label", {}, routed, " the edges of the node decide again which of them carry it"),
        button("Start the fork", go), button("Back", () => place.replaceChildren(start)))
      edited.focus()
    }
    const start = button("Fork from here", open)
    place.append(start)
    return place
  }

  async moment(id) {
    if (!this.moments.has(id)) {
      const found = await page.server.get(`/runs/${this.runId}/state?at=${encodeURIComponent(id)}`).catch(() => ({ moment: null }))
      this.moments.set(id, found.moment)
    }
    return this.moments.get(id)
  }

  // The last step before a place that ended a firing; null: there is none.
  lastEnd(upto) {
    for (let at = Math.min(upto, this.steps.length); at > 0; at -= 1) if (this.steps[at - 1].kind === "done") return this.steps[at - 1]
    return null
  }

  // The state after the step that the slider is at, and its difference from an earlier one.
  async drawState(step, upto) {
    if (!this.plan || !step) return
    if (this.isAtEnd && ![...OVER, "paused"].includes(this.run.status)) return
    const end = this.lastEnd(upto)
    const base = this.base === null ? end && this.lastEnd(end.number - 1) : this.lastEnd(this.base)
    const key = end ? `${end.id} ${base ? base.id : ""} ${this.base}` : ""
    if (key === this.stateOf || !end) return
    this.stateOf = key
    const [now, before] = await Promise.all([this.moment(end.id), base ? this.moment(base.id) : null])
    if (this.stateOf !== key || !now) return // the slider has moved meanwhile
    const from = make("input", { type: "number", id: "base", min: 1, max: this.steps.length, value: base ? base.number : "", onchange: () => {
      this.base = from.value ? Number(from.value) : null
      this.draw()
    } })
    const next = now.due.length ? make("p", { class: "soft" }, `next: ${now.due.map((each) => each.activation).join(", ")}`) : null
    this.stateView.replaceChildren(make("h2", {}, `State after step ${end.number}`),
      make("div", { class: "bar" }, make("label", { for: "base" }, "differences from step"), from),
      ...[base ? this.between(base, end) : null, next].filter(Boolean), stateTable(now.state, before ? before.state : null))
  }

  // What happened between two steps, in one line.
  between(first, last) {
    const [a, b] = [folded(this.steps, first.number), folded(this.steps, last.number)]
    const more = [...b.nodes].map(([key, node]) => [node.path.join(" / "), node.times - (a.nodes.has(key) ? a.nodes.get(key).times : 0)])
      .filter(([, times]) => times > 0).map(([name, times]) => (times > 1 ? `${name} ${times}×` : name))
    const used = [`${(b.at - a.at).toFixed(2)} s`, b.tokens - a.tokens ? `${b.tokens - a.tokens} tokens` : "", money(b.cost - a.cost)]
    const named = more.length > 12 ? [...more.slice(0, 12), `${more.length - 12} more`] : more
    return make("p", {}, `Since step ${first.number}: ${named.join(", ") || "nothing"}; ${used.filter(Boolean).join(" · ")}`)
  }
}

const SAID = { pending: "It has not run.", skipped: "It was left out: nothing was sent to it.", unknown: "It may have run: its firings are not kept.",
  cancelled: "It was stopped before it ended.", limited: "The limit was reached before it ended.", running: "It is at work.", waiting: "It waits." }

// An error with the line of the user's own code that it came through.
const failureDetail = ({ error, place }) => [make("p", { class: "is-failed lines" }, error), place ? make("div", { class: "soft" }, "in your code") : null, place ? block(place) : null].filter(Boolean)

// For each edge of a plan: its key, that of its source, and where it is recorded if it leaves a cycle.
function edgeKeys(scope, path) {
  const found = scope.edges.map((edge) => ({
    key: keyOf([...path, edge.name]), source: keyOf([...path, edge.source]), isEntry: edge.source === "@entry" && !path.length,
    inner: scope.nodes.filter((node) => node.inside && node.inside.kind === "cycle").map((node) => keyOf([...path, node.name, edge.name])),
  }))
  for (const node of scope.nodes) if (node.inside) found.push(...edgeKeys(node.inside, [...path, node.name]))
  return found
}

// The output of a step: what its edges carried; the fields of several of them together.
function outputOf(step) {
  const payloads = Object.values(step.output || {})
  const areFields = payloads.every((each) => each && typeof each === "object" && !Array.isArray(each))
  return payloads.length > 1 && areFields ? Object.assign({}, ...payloads) : payloads[0] ?? null
}

// Approve a call with other arguments.
function changedCall(given, send) {
  const place = make("span", { class: "bar" })
  place.append(button("Change the arguments", () => {
    const edited = make("textarea", { rows: 4, "aria-label": "arguments, as JSON" })
    edited.value = JSON.stringify(given, null, 2)
    place.replaceChildren(edited, button("Approve these", () => {
      try {
        send({ answer: "edit", arguments: JSON.parse(edited.value) })
      } catch (error) {
        problem(error)
      }
    }))
    edited.focus()
  }))
  return place
}

// The text of a question; the marks of its inputs in words.
const questionText = (text) => text.replace(/^=== INPUT FROM (.+) \(\w+\) ===\n+/gm, "$1 said:\n")

// A question with what will happen: of a tool its arguments, what it does and what it changes.
export function questionCard(question, send) {
  const data = question.data || {}, isTool = question.kind === "tool_approval" && data.tool
  const card = make("section", { class: "card", "aria-label": "question" }, make("p", { class: "soft" }, `${question.by} asks`),
    data.description ? make("p", {}, make("strong", {}, legible(String(data.description)))) : null)
  if (isTool) {
    card.append(make("h2", {}, `May the tool ${legible(String(data.tool))} be called?`))
    for (const name of ["does", "changes"]) if (data[name]) card.append(make("p", {}, make("span", { class: "soft" }, `${name === "does" ? "What it does" : "What it changes"}: `), legible(String(data[name]))))
    card.append(make("p", { class: "soft" }, "It is called with:"), block(callShown(question)), details("as it was asked", make("p", { class: "lines" }, legible(question.text))))
  } else card.append(make("p", { class: "lines" }, questionText(legible(question.text))))
  const rest = Object.fromEntries(Object.entries(data).filter(([name]) => name !== "description" && !(isTool && ["tool", "arguments", "does", "changes"].includes(name))))
  if (Object.keys(rest).length) card.append(isTool ? details("more", block(legible(rest))) : block(legible(rest)))
  if (question.due) {
    const then = question.default === null || question.default === undefined ? "the node fails" : `the answer is ${JSON.stringify(question.default)}`
    card.append(make("p", { class: "soft" }, `Without an answer until ${new Date(question.due * 1000).toLocaleString()} ${then}.`))
  }
  if (!may("answer")) return card
  const act = (text, value) => button(text, () => send(value))
  if (question.kind === "approval" || question.kind === "tool_approval") {
    card.append(make("div", { class: "bar" }, act("Approve", true), act("Refuse", false), isTool ? changedCall(data.arguments || {}, send) : null))
  }
  else if ((question.options || []).length) card.append(make("div", { class: "bar" }, question.options.map((option) => button(legible(option), () => send(option)))))
  else {
    const field = make("input", { type: "text", "aria-label": "answer" })
    card.append(make("form", { class: "bar", onsubmit: (event) => {
      event.preventDefault()
      send(question.kind === "form" ? parsed(field.value) : field.value)
    } }, field, make("button", {}, "Answer")))
  }
  return card
}
