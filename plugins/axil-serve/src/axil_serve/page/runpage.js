// One run: its graph, timeline, steps, costs, files, state and questions.
import { afterPress, button, carried, difference, keep, legible, LongList, make, money, renew, seconds, table } from "./dom.js"
import { amounts, Details, failureDetail } from "./details.js"
import { fillPictures, filesView } from "./files.js"
import { GraphView, keyOf } from "./graph.js"
import { answerFirst, questionCard } from "./question.js"
import { markdownOf, save } from "./report.js"
import { costs, folded, Live, located, partial, placeOf, scopeOf, states } from "./run.js"
import { lost, may, onKeys, page, problem, show, tried } from "./shell.js"
import { costTable, stateTable } from "./tables.js"
import { Timeline } from "./timeline.js"

const OVER = ["done", "failed", "cancelled", "limited", "parked"]
const WAIT = 200
const SILENT = 1000 // milliseconds without a step
const TAB_KEYS = { graph: "g", timeline: "t", steps: "s", costs: "o", files: "f" }
const PRESSED = { k: "aside .fork", p: ".acts .compare", b: ".acts .again", d: ".acts .html" } // what a key presses
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })

export class RunPage {
  constructor(runId, info, plan, layout) {
    Object.assign(this, { runId, info, plan, steps: [], live: new Live(), chosen: null, isDue: false, upto: null, base: null,
      view: "graph", run: null, whole: null, moments: new Map(), due: [] })
    this.head = make("header", { class: "run-head" })
    this.failure = make("div")
    this.questions = make("div")
    this.details = new Details(this)
    this.detail = make("aside", { "aria-label": "details", tabindex: -1 })
    this.stateView = make("div")
    this.slider = make("input", { type: "range", min: 0, max: 0, value: 0, id: "step", oninput: () => this.moved() })
    this.where = make("output", { for: "step", class: "soft" })
    const place = make("div", { class: "scroll graph", role: "region", "aria-label": "graph of the run", tabindex: 0 })
    this.timeline = new Timeline((row) => (row.step ? this.goTo(placeOf(this.steps, row.step.number) - 1) : this.choose({ path: row.path, node: this.nodeAt(row.path) })))
    this.views = { graph: this.graphView(place), timeline: this.timeline.place, steps: this.stepsView(), costs: make("div", { class: "scroll" }),
      files: make("div") }
    this.tabs = Object.keys(this.views).map((name) => button(name[0].toUpperCase() + name.slice(1), () => this.turn(name),
      { "aria-pressed": "false", title: `key ${TAB_KEYS[name]}` }))
    show(
      this.head, this.failure, this.questions,
      make("div", { class: "run" }, make("section", { "aria-label": "run" }, make("div", { class: "bar tabs" }, this.tabs),
        make("div", { class: "bar step" }, make("label", { for: "step" }, "Step"), this.slider, this.where, button("Last", () => this.toEnd())),
        Object.values(this.views), this.stateView), this.detail),
    )
    if (plan) {
      this.graph = new GraphView(place, (what) => this.choose(what),
        (open, path) => page.server.get(`/runs/${encodeURIComponent(runId)}/layout?open=${encodeURIComponent(JSON.stringify(open))}`, path).catch(problem))
      this.graph.use(plan, layout)
    } else this.list = place
    this.sources = plan ? edgeKeys(plan, []) : []
    onKeys((event, isTaken) => this.pressed(event, isTaken))
    this.turn("graph")
    this.draw()
  }

  pressed(event, isTaken) {
    if (event.key === "Escape") return this.choose(null)
    if (isTaken) return null
    const tab = Object.keys(this.views).find((name) => TAB_KEYS[name] === event.key)
    if (tab && !(event.key === "f" && event.target.dataset && event.target.dataset.key)) this.turn(tab)
    else if (event.key === "x" && this.whole.failures.length) this.toFailure(this.whole.failures[0])
    else if (event.key === "a") return answerFirst(this.questions, event)
    else if (PRESSED[event.key]) {
      const acts = document.querySelector(PRESSED[event.key])
      if (!acts) return null
      acts.click()
    } else return null
    return event.preventDefault()
  }

  // Show where a run failed, with what the node had received.
  toFailure({ path }) {
    this.toEnd()
    this.choose({ path, node: this.nodeAt(path) })
    if (this.graph) this.graph.reveal(keyOf(path))
    this.detail.focus({ preventScroll: true }) // it may be longer than the window: its beginning is shown
    if (this.detail.getBoundingClientRect().top > innerHeight / 2) this.detail.scrollIntoView()
  }

  graphView(place) {
    const act = (text, act, label) => button(text, act, { class: "small", ...(label ? { "aria-label": label } : {}) })
    const find = make("input", { type: "search", placeholder: "find a node", class: "small", "aria-label": "find a node", onchange: () => {
      const text = find.value.toLowerCase(), nameOf = (each) => each.path.at(-1).toLowerCase()
      const boxes = [(each) => nameOf(each) === text, (each) => nameOf(each).startsWith(text), (each) => each.path.join("/").toLowerCase().includes(text)]
      const box = boxes.map((fits) => this.graph.boxes.find(fits)).find(Boolean)
      if (box && find.value) this.graph.reveal(box.key, true)
    } })
    const bar = this.plan ? make("div", { class: "bar" }, act("Unfold all", () => this.graph.all(true)), act("Fold all", () => this.graph.all(false)),
      act("+", () => this.graph.zoom(this.graph.scale * 1.4), "larger"), act("−", () => this.graph.zoom(this.graph.scale / 1.4), "smaller"),
      act("Fit", () => this.graph.fit()), find) : null
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
    if (name === "files") filesView(this.runId, this.views.files)
    if (this.run) this.draw()
  }

  get isQueued() {
    return this.info.status === "queued" && !this.live.firings.size && this.steps.length < 2
  }

  get isAtEnd() {
    return this.upto === null
  }

  receive(kind, data) {
    if (kind === "reset") Object.assign(this, { steps: [], run: null, whole: null, live: new Live() })
    else if (kind === "connected") this.live = new Live(this.live.ended) // what is at work comes again
    else if (kind === "step") {
      this.steps.push(data)
      this.live.end(data)
      if (data.number > this.info.steps) this.announce(data)
    } else if (kind !== "end") this.live.receive(kind, data)
    if (this.isDue) return
    this.isDue = true
    requestAnimationFrame(() => afterPress(() => this.draw()))
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
    if (this.isMoved) return
    this.isMoved = true
    requestAnimationFrame(() => {
      this.isMoved = false
      this.draw()
    })
  }

  draw() {
    this.isDue = false
    const upto = this.isAtEnd ? this.steps.length : this.upto
    this.slider.max = this.steps.length
    this.slider.value = upto
    const step = this.steps[upto - 1]
    this.where.textContent = step ? `${upto} of ${this.steps.length}: ${step.kind === "ended" ? step.status : step.kind} ${step.activation} at ${seconds(step.at)}` : ""
    this.slider.setAttribute("aria-valuetext", this.where.textContent)
    // the head, the questions and the waterfall are those of the whole run, wherever the slider is
    const whole = this.whole = folded(this.steps, this.steps.length, this.whole)
    const run = this.run = this.isAtEnd ? whole : folded(this.steps, upto, this.run === whole ? null : this.run)
    for (const each of this.plan ? whole.failures : []) each.path = located(this.plan, each.path) || each.path
    this.states = this.statesOf(run)
    if (this.isAtEnd) this.askForDue(run)
    this.drawHead(whole)
    this.drawQuestions(whole)
    if (this.view === "timeline") this.timeline.show(whole, this.plan)
    if (this.view === "steps" && !this.found) this.stepList.show(this.steps.length)
    if (this.view === "costs") this.drawCosts(run)
    if (this.view === "graph" && this.graph) this.graph.show(this.states, this.carried(run), this.isAtEnd && this.steps.at(-1)?.number > this.info.steps)
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
    const status = this.isQueued ? "queued" : run.status
    const facts = [seconds(run.at), run.tokens ? `${run.tokens} tokens` : "", money(run.cost)].filter(Boolean).join(" · ")
    const cut = [...run.nodes.values()].filter((node) => node.kept < node.rounds)
    const act = (text, path, then) => button(text, () => tried(async () => {
      await page.server.post(`/runs/${this.runId}/${path}`)
      await then()
    }))
    const isOver = OVER.includes(run.status), { session } = this.info
    keep(this.head, [
      ["facts", () => make("div", {}, make("h1", {}, `${this.info.workflow} `, make("span", { class: `status is-${status}` }, status)),
        make("p", { class: "soft facts" }, [make("code", {}, this.runId), `${this.info.begun ? ` · ${TIME.format(new Date(this.info.begun * 1000))}` : ""}`, facts ? ` · ${facts}` : "",
          session ? [" · chat ", page.server.isExported ? session : make("a", { href: chatOf(this.info) }, session)] : ""])), `${status} ${facts}`],
      ["acts", () => make("div", { class: "bar acts" },
        ...(may("run") && !isOver ? [act("Cancel", "cancel", () => {})] : []),
        ...(may("run") && isOver && run.status !== "done" ? [act("Resume", "resume", () => this.again())] : []),
        ...(may("run") ? [button("Run again …", () => {
          page.again = { workflow: this.info.workflow, input: this.whole.input }
          location.hash = "start"
        }, { class: "again" })] : []),
        this.savers(),
        ...(may("run") && isOver ? [this.removeButton()] : []),
        ...(this.info.forked_from && !page.server.isExported ? [make("a", { class: "compare",
          href: `#compare=${encodeURIComponent(this.info.forked_from)},${encodeURIComponent(this.runId)}` }, "compare with the run it was forked from")] : [])), isOver ? run.status : ""],
      ...(this.plan || page.server.isExported ? [] : [["elsewhere", () => make("p", { class: "notice" }, "The workflow of this run is not served here: it cannot be drawn, resumed or forked, "
        + "and what is answered waits for a server or a worker that has it.")]]),
      ...cut.map((node) => [keyOf(node.path), () => make("p", { class: "notice" }, `Of the ${node.rounds} rounds of ${node.path.join(" / ")} the journal keeps ${node.kept} one by one: `
        + "what the others said is not here. Rounds, tokens, money and time count all of them."), `${node.rounds} ${node.kept}`]),
    ])
    // why it went wrong stands above everything else
    const isWrong = run.error && run.status !== "paused"
    keep(this.failure, !isWrong ? [] : run.failures.length ? run.failures.slice(0, 5).map((each, at) => [`${at} ${each.activation}`, () => make("section", { class: "card wrong", "aria-label": `failure of ${each.activation}` },
      make("h2", {}, button(each.path.join(" / "), () => this.toFailure(each), { class: "link" }), " failed"), ...failureDetail(each)), each.error])
      : [["", () => make("section", { class: "card wrong", "aria-label": "failure" }, make("p", { class: "lines" }, run.error)), run.error]])
  }

  // The run as a file of Markdown, JSON or HTML, the last of which needs no server.
  savers() {
    const name = this.runId
    const saver = (title, act) => button(title, () => tried(act), { class: `small ${title.toLowerCase()}` })
    return make("span", { class: "group", role: "group", "aria-label": "save the run" }, make("span", { class: "soft" }, "Save "),
      saver("Markdown", () => save(`${name}.md`, "text/markdown", markdownOf(this.info, this.whole))),
      saver("JSON", () => save(`${name}.json`, "application/json", JSON.stringify({ run: this.info, steps: this.steps }, null, 1))),
      page.server.isExported ? null : saver("HTML", async () => save(`${name}.html`, "text/html", await (await page.server.ask(`/runs/${encodeURIComponent(name)}/export`)).text())))
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
    keep(this.questions, open.map((question) => [JSON.stringify(question), () => questionCard({ ...question, label: `question of ${question.by}` }, async (value) => {
      try {
        await page.server.post(`/runs/${this.runId}/answers`, { answers: { [question.id]: value } })
      } catch (error) {
        problem(error)
      }
    })]))
  }

  drawList(run) {
    const rows = [...run.nodes.values()].map((node) => [
      make("td", {}, button(node.path.join(" / "), () => this.choose({ path: node.path, node: this.nodeAt(node.path) }))),
      (this.states.get(keyOf(node.path)) || node).state, amounts(node)])
    renew(this.list, table(["node", "state", "used"], rows))
  }

  drawCosts(run) {
    const key = `${run.count}`
    if (key === this.costsOf) return
    this.costsOf = key
    renew(this.views.costs, costTable(costs(run, this.plan), (each) => this.choose({ path: each.path, node: this.nodeAt(each.path) })),
      make("p", { class: "soft" }, "Time is from the last input of a firing to its end. A node that holds a graph has the time of what is inside."))
  }

  choose(what) {
    this.chosen = what
    if (this.graph) this.graph.choose(what && what.path ? what.path : null)
    this.detail.replaceChildren()
    this.details.edited.clear()
    if (what) this.drawDetail()
    else if (this.run) this.drawOverview(this.run)
    if (what && matchMedia("(max-width: 800px)").matches) this.detail.scrollIntoView({ behavior: "smooth" })
  }

  // What is shown while no node is chosen: what the run received, and what came of it.
  drawOverview(run) {
    const parts = [["Input", run.input], ["Output", run.output]].filter(([, value]) => value !== null && value !== undefined)
    const made = ([name, value]) => [name, () => make("div", {}, make("h2", {}, name), carried(value)), run.status]
    if (keep(this.detail, [...parts.map(made), ["hint", () => this.hint()]])) fillPictures(this.runId, this.detail)
  }

  hint() {
    return make("p", { class: "soft" }, "Choose a node to see what came in, what was asked and answered, and what it cost; an edge to see what it carried.")
  }

  drawDetail() {
    const what = this.chosen
    if (keep(this.detail, what.edge ? this.details.edge(what) : this.details.node(what))) fillPictures(this.runId, this.detail)
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
    const base = this.base === null ? end && this.lastEnd(placeOf(this.steps, end.number) - 1) : this.lastEnd(placeOf(this.steps, this.base))
    const key = end ? `${end.id} ${base ? base.id : ""} ${this.base}` : ""
    if (key === this.stateOf || !end) return
    this.stateOf = key
    const [now, before] = await Promise.all([this.moment(end.id), base ? this.moment(base.id) : null])
    if (this.stateOf !== key || !now) return // the slider has moved meanwhile
    const from = make("input", { type: "number", id: "base", min: 1, max: this.steps[this.steps.length - 1].number, value: base ? base.number : "", onchange: () => {
      this.base = from.value ? Number(from.value) : null
      this.draw()
    } })
    const next = now.due.length ? make("p", { class: "soft" }, `next: ${now.due.map((each) => each.activation).join(", ")}`) : null
    afterPress(() => renew(this.stateView, make("h2", {}, `State after step ${end.number}`),
      make("div", { class: "bar" }, make("label", { for: "base" }, "differences from step"), from),
      ...[base ? this.between(base, end) : null, next].filter(Boolean), stateTable(now.state, before ? before.state : null)))
  }

  // What happened between two steps, in one line.
  between(first, last) {
    const [a, b] = [first, last].map((each) => folded(this.steps, placeOf(this.steps, each.number)))
    const more = [...b.nodes].map(([key, node]) => [node.path.join(" / "), node.times - (a.nodes.has(key) ? a.nodes.get(key).times : 0)])
      .filter(([, times]) => times > 0).map(([name, times]) => (times > 1 ? `${name} ${times}×` : name))
    const used = [`${(b.at - a.at).toFixed(2)} s`, b.tokens - a.tokens ? `${b.tokens - a.tokens} tokens` : "", money(b.cost - a.cost)]
    const named = more.length > 12 ? [...more.slice(0, 12), `${more.length - 12} more`] : more
    return make("p", {}, `Since step ${first.number}: ${named.join(", ") || "nothing"}; ${used.filter(Boolean).join(" · ")}`)
  }
}

// For each edge of a plan: its key, that of its source, and where it is recorded if it leaves a cycle.
function edgeKeys(scope, path) {
  const found = scope.edges.map((edge) => ({
    key: keyOf([...path, edge.name]), source: keyOf([...path, edge.source]), isEntry: edge.source === "@entry" && !path.length,
    inner: scope.nodes.filter((node) => node.inside && node.inside.kind === "cycle").map((node) => keyOf([...path, node.name, edge.name])),
  }))
  for (const node of scope.nodes) if (node.inside) found.push(...edgeKeys(node.inside, [...path, node.name]))
  return found
}


// The address of the chat that a run belongs to.
export const chatOf = (run) => `#chat=${encodeURIComponent(run.session)}&workflow=${encodeURIComponent(run.workflow)}&owner=${encodeURIComponent(run.owner || "")}`

// Open the page of a run; `leaving(stop)` is called with what ends it.
export async function openRun(runId, at, leaving) {
  const stop = new AbortController()
  leaving(() => stop.abort())
  show(make("p", { class: "soft" }, "Loading …"))
  const path = `/runs/${encodeURIComponent(runId)}`
  const [info, { plan, layout }] = await Promise.all([page.server.get(path), page.server.get(`${path}/plan`)])
  if (stop.signal.aborted) return // another page was opened meanwhile
  const view = new RunPage(runId, info, plan, layout)
  document.title = `axil: ${info.workflow} ${runId}`
  view.again = async () => { // it is resumed: what is new comes behind what is here
    view.info = await page.server.get(path)
    await follow()
  }
  const follow = () => page.server.follow(runId, (kind, data) => {
    view.receive(kind, data)
    if (at && kind === "step" && data.number === at) requestAnimationFrame(() => view.goTo(placeOf(view.steps, at) - 1))
  }, stop.signal, lost, view.steps.at(-1)?.id)
  await follow()
}
