// The editor of a workflow file: its text, its graph, forms for nodes and edges, and what the check finds.
import { afterPress, button, details, make, parsed, renew } from "./dom.js"
import { emptyOf, Forms, settingsOf, wordsOf } from "./forms.js"
import { GraphView, keyOf, shape } from "./graph.js"
import { scopeOf } from "./run.js"
import { empty, onKeys, page, problem, show } from "./shell.js"
import { TextView } from "./textview.js"

const WAIT = 250
const MOST_UNDONE = 200
const USUAL = ["agent", "human", "python", "literal", "switch", "loop_counter", "map", "subgraph", "passthrough"] // types that are offered first
const drafts = new Map() // what was not saved, by the names of files
const EMPTY = "version: 1\ngraph:\n  start: []\n  end: []\n  nodes: []\n  edges: []\n"

// `leaving(stop)` is called with what has to be done when another page is opened.
export async function edit(name, isCurrent, leaving) {
  if (!name) return listFiles(isCurrent)
  const opened = new EditorPage(name)
  await opened.open(() => {
    if (isCurrent()) leaving(() => opened.close())
    return isCurrent()
  })
}

async function listFiles(isCurrent) {
  const { files } = await page.server.get("/edit/files")
  if (!isCurrent()) return
  const name = make("input", { type: "text", id: "name", placeholder: "flow.yaml", required: true })
  const form = make("form", { class: "bar", onsubmit: (event) => {
    event.preventDefault()
    const given = name.value.trim()
    if (given) location.hash = `edit=${encodeURIComponent(/\.(ya?ml|json|toml)$/.test(given) ? given : `${given}.yaml`)}`
  } }, make("label", { for: "name" }, "New file"), name, make("button", { class: "primary" }, "Begin"))
  show(make("h1", {}, "Workflow files"), form,
    files.length ? make("ul", { class: "plain" }, files.map((each) => make("li", {}, make("a", { href: `#edit=${encodeURIComponent(each)}` }, each))))
      : empty("No files yet", make("p", {}, "A workflow file is YAML, JSON or TOML: nodes, and the edges between them. Name the first one above: it is made when it is saved.")))
  name.focus()
}

// ------------------------------------------------------------------------------------- page

class EditorPage {
  constructor(name) {
    Object.assign(this, { name, digest: "", saved: "", problems: [], plan: null, chosen: null, marked: new Set(), done: [], undone: [], asked: 0, pending: Promise.resolve() })
    this.view = new TextView(() => this.typed())
    this.forms = new Forms(this)
    this.form = this.forms.place
    this.list = make("section", { "aria-label": "findings", class: "findings" })
    this.place = make("div", { class: "scroll graph", role: "region", "aria-label": "graph of the file", tabindex: 0 })
    this.state = make("span", { class: "soft", role: "status" })
    this.palette = make("div", { class: "palette", role: "group", "aria-label": "node types" })
    this.notice = make("p", { class: "notice", role: "status", hidden: true })
    this.grouping = button("Group the marked", () => this.group(), { disabled: true })
  }

  async open(isCurrent) {
    const [schema, file] = await Promise.all([page.server.get("/edit/schema"),
      page.server.get(`/edit/file?name=${encodeURIComponent(this.name)}`)])
    if (!isCurrent()) return
    this.schema = schema
    this.digest = file.digest
    this.saved = file.text
    const draft = drafts.get(this.name)
    if (draft) this.digest = draft.digest
    const input = make("textarea", { rows: 2, id: "run-input" })
    const run = page.me.rights.includes("run") ? details("Run it", make("form", { onsubmit: (event) => {
      event.preventDefault()
      this.run(input.value)
    } }, make("label", { for: "run-input" }, "Input: a text, or JSON"), input, make("button", { class: "primary", title: "Ctrl+Enter" }, "Save and run"))) : null
    this.runs = run
    input.value = sessionStorage.getItem(`axil-input ${this.name}`) || ""
    if (run) run.addEventListener("toggle", () => run.open && input.focus())
    this.undoing = button("Undo", () => this.undo(), { title: "Ctrl+Z", disabled: true })
    this.redoing = button("Redo", () => this.redo(), { title: "Ctrl+Y", disabled: true })
    const find = this.find = make("input", { type: "search", placeholder: "find a type", "aria-label": "find a node type", oninput: () => this.drawPalette(find.value), onkeydown: (event) => {
      const first = this.palette.querySelector("button")
      if (event.key !== "Enter" || !first || !find.value) return
      event.preventDefault()
      this.add(first.dataset.type, [], this.plan).then(() => this.form.querySelector("textarea, input:not(#f-id)")?.focus())
      find.value = ""
      this.drawPalette("")
    } })
    show(
      make("header", {}, make("h1", {}, this.name), this.state, make("a", { href: "#edit=" }, "all files")),
      make("div", { class: "bar" }, button("Save", () => this.save(), { title: "Ctrl+S" }), this.undoing, this.redoing, run),
      make("div", { class: "editor" },
        make("section", { "aria-label": "text" }, this.view.place, this.list),
        make("section", { "aria-label": "drawing" }, this.notice,
          details("Add a node: drag it into the graph, or press it", make("div", { class: "bar" }, find), this.palette),
          make("div", { class: "bar" }, this.grouping, button("Fit", () => this.graph && this.graph.fit()),
            make("span", { class: "soft small" }, "drag from node to node: an edge; over the ground: mark")),
          this.place), this.form),
    )
    this.palette.parentElement.open = !matchMedia("(max-width: 800px)").matches
    this.drawPalette("")
    this.dragging()
    onKeys((event) => this.pressed(event))
    this.unload = (event) => this.isChanged && event.preventDefault()
    window.addEventListener("beforeunload", this.unload)
    this.view.text = draft ? draft.text : file.digest ? file.text : EMPTY
    this.last = this.view.text
    await this.check()
  }

  close() {
    clearTimeout(this.timer)
    this.asked = -1
    if (this.isChanged) drafts.set(this.name, { text: this.view.text, digest: this.digest })
    else drafts.delete(this.name)
    window.removeEventListener("beforeunload", this.unload)
    onKeys(null)
  }

  get isChanged() {
    return this.view.text !== this.saved
  }

  // ---- the text and its history

  typed() {
    this.remember(this.view.text)
    this.view.counted()
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.check(), WAIT)
    this.drawStatus()
  }

  remember(text) {
    this.done.push(this.last)
    if (this.done.length > MOST_UNDONE) this.done.shift()
    this.undone = []
    this.last = text
  }

  put(text) {
    this.view.text = this.last = text
    return this.check()
  }

  undo() {
    if (!this.done.length) return
    this.undone.push(this.last)
    this.put(this.done.pop())
  }

  redo() {
    if (!this.undone.length) return
    this.done.push(this.last)
    this.put(this.undone.pop())
  }

  // Make an edit of the drawing or a form in the text; the server finds the place.
  change(...edits) {
    const changed = this.pending.then(() => this.changed(edits)) // one after the other
    this.pending = changed
    return changed
  }

  async changed(edits) {
    if (this.fixed) return problem(new Error(`The drawing of this file cannot be edited: ${this.fixed}. Edit the text.`))
    try {
      let before, text
      do { // again on what was typed meanwhile
        text = before = this.view.text
        for (const each of edits) text = (await page.server.post("/edit/change", { text, edit: each })).text
      } while (this.view.text !== before)
      this.remember(text)
      await this.put(text)
      return true
    } catch (error) {
      problem(error)
      return false
    }
  }

  async check() {
    const asked = this.asked < 0 ? -1 : ++this.asked
    const { text } = this.view
    this.drawStatus("checking …")
    try {
      const body = { name: this.name, text, open: this.graph ? this.graph.opened : null }
      const { problems, graph, layout, fixed } = await page.server.post("/edit/check", body)
      if (asked !== this.asked || asked < 0) return // it was changed meanwhile
      Object.assign(this, { problems, fixed, layout })
      if (graph) Object.assign(this, { plan: graph, drawn: text })
      this.isStale = !graph
      this.drawStatus()
      afterPress(() => asked === this.asked && this.draw())
    } catch (error) {
      problem(error)
    }
  }

  // One save after the other, each with the changes before it.
  save() {
    const saved = this.pending.then(() => this.written())
    this.pending = saved
    return saved
  }

  async written() {
    try {
      const { text } = this.view
      const body = JSON.stringify({ name: this.name, text, digest: this.digest })
      this.digest = (await (await page.server.ask("/edit/file", { method: "PUT", body })).json()).digest
      this.saved = text
      this.drawStatus()
      return true
    } catch (error) {
      problem(error)
      return false
    }
  }

  async run(input) {
    await this.pending
    if (this.isChanged && !(await this.save())) return
    try {
      const body = { name: this.name }
      sessionStorage.setItem(`axil-input ${this.name}`, input)
      if (input.trim()) body.input = parsed(input)
      location.hash = `run=${(await page.server.post("/edit/run", body)).run_id}`
    } catch (error) {
      problem(error)
    }
  }

  pressed(event) {
    const isCommand = event.ctrlKey || event.metaKey, key = event.key.toLowerCase()
    if (isCommand && key === "enter" && !event.target.form && this.runs) this.runs.open ? this.run(this.runs.querySelector("textarea").value) : (this.runs.open = true)
    else if (isCommand && key === "s") this.save()
    else if (isCommand && key === "z" && !event.shiftKey) this.undo()
    else if (isCommand && (key === "y" || (key === "z" && event.shiftKey))) this.redo()
    else if (["Delete", "Backspace"].includes(event.key) && this.place.contains(event.target) && this.chosen) this.remove()
    else if (key === "m" && this.place.contains(event.target) && event.target.dataset.key) this.mark(event.target.dataset.key)
    else return
    event.preventDefault()
  }

  // ---- drawing

  drawStatus(word = "") {
    this.undoing.disabled = !this.done.length
    this.redoing.disabled = !this.undone.length
    const errors = this.problems.filter((each) => each.severity === "error").length
    const found = errors ? `${errors} error${errors > 1 ? "s" : ""}` : this.problems.length ? `${this.problems.length} warnings` : "no findings"
    this.state.textContent = [word || found, this.isChanged ? "not saved" : "saved"].join(" · ")
  }

  draw() {
    this.drawStatus()
    this.view.mark(this.problems)
    renew(this.list, ...this.problems.map((each) => make("p", { class: `finding is-${each.severity}` },
      button(each.line ? `line ${each.line}` : each.where || this.name, () => each.line && this.view.goTo(each.line), { class: "link" }),
      ` ${each.severity}: ${each.message} ${each.hint} `, make("span", { class: "soft" }, each.id))))
    this.place.classList.toggle("is-stale", Boolean(this.isStale))
    this.notice.textContent = this.fixed ? `The drawing shows the file, and cannot be edited: ${this.fixed}. Edit the text.` : ""
    this.notice.hidden = !this.fixed
    this.palette.parentElement.hidden = Boolean(this.fixed)
    if (!this.plan || !this.plan.nodes.length) {
      this.graph = null
      this.forms.draw()
      return this.place.replaceChildren(this.plan ? empty("An empty graph", make("p", {}, "Press a type above, or drag it here: the first node gets the input, and its output is the result. Then connect: drag from node to node, or use the form of a node.")) : empty("The text holds no graph", make("p", {}, "What is wrong stands under the text; the drawing comes back when it can be read.")))
    }
    this.graph ??= new GraphView(this.place, (what) => this.choose(what), (open) => this.layoutOf(open))
    if (this.layout) this.graph.use(this.plan, this.layout)
    const states = new Map()
    const visit = (scope, path) => scope.nodes.forEach((node) => {
      const own = [...path, node.name], found = this.of(node.path)
      const isError = found.some((each) => each.severity === "error")
      const note = found.length ? `${node.type} · ${found.length} finding${found.length > 1 ? "s" : ""}` : node.type
      states.set(keyOf(own), { state: isError ? "failed" : found.length ? "waiting" : "pending", note })
      if (node.inside) visit(node.inside, own)
    })
    visit(this.plan, [])
    this.graph.show(states, new Map())
    this.markShown()
    this.forms.draw()
  }

  // The layout of the graph that is drawn, with these nodes open; null: it cannot be had.
  async layoutOf(open) {
    try {
      const { graph, layout } = await page.server.post("/edit/layout", { name: this.name, text: this.drawn, open })
      return graph && { layout }
    } catch (error) {
      problem(error)
      return null
    }
  }

  // What was found at a place of the file, or inside it.
  of(path) {
    const place = wordsOf(path)
    return this.problems.filter(({ path: each }) => each === place || each.startsWith(`${place}.`) || each.startsWith(`${place}[`))
  }

  drawPalette(text) {
    const known = this.schema.$defs.nodes.properties.type.examples
    const types = [...USUAL.filter((each) => known.includes(each)), ...known.filter((each) => !USUAL.includes(each))].filter((each) => each.includes(text.toLowerCase()))
    this.palette.replaceChildren(...types.map((type) => button(type, () => this.add(type, [], this.plan), { "data-type": type, class: USUAL.includes(type) ? "is-usual" : "",
      title: settingsOf(this.schema, "nodes", type).description })))
  }

  choose(what) {
    this.chosen = what
    this.graph.choose(what && what.path ? what.path : null)
    this.forms.key = ""
    this.forms.draw()
    if (what) {
      const found = what.edge || what.node
      if (found.line) this.view.goTo(found.line, false)
    }
  }

  // ---- edits

  scopeAt(path) {
    return path.length ? scopeOf(this.plan, [...path, ""]) : this.plan
  }

  // Add a node of a type to a graph; `after`: the node from which an edge leads to it.
  async add(type, path, scope, after = "") {
    if (!scope) return problem(new Error("The text holds no graph."))
    const { properties, required } = settingsOf(this.schema, "nodes", type)
    const names = new Set(scope.nodes.map((node) => node.name))
    const base = type.split(/[./]/).pop()
    let name = base
    for (let at = 2; names.has(name); at += 1) name = `${base}${at}`
    const value = { id: name, type }
    const config = Object.fromEntries(required.map((key) => [key, emptyOf(properties[key], this.schema.$defs)]))
    if (required.length) value.config = config
    const edits = [{ do: "append", path: [...scope.path, "nodes"], value }]
    if (!scope.nodes.length) for (const end of ["start", "end"]) edits.push({ do: "append", path: [...scope.path, end], value: name })
    if (after) {
      edits.push({ do: "append", path: [...scope.path, "edges"], value: { from: after, to: name } })
      const end = scope.edges.find((each) => each.source === after && each.target === "@exit")
      if (end) edits.push(this.removal(end), { do: "append", path: [...scope.path, "end"], value: name }) // the result comes from the new one
    }
    if (await this.change(...edits)) this.chooseNode([...path, name])
  }

  chooseNode(path) {
    const scope = scopeOf(this.plan, path), node = scope && scope.nodes.find((each) => each.name === path[path.length - 1])
    if (node) this.choose({ path, node })
    if (node) this.graph.reveal(keyOf(path))
  }

  connect(from, to, path) {
    const scope = this.scopeAt(path)
    if (from === "@entry") return this.change({ do: "append", path: [...scope.path, "start"], value: to })
    if (to === "@exit") return this.change({ do: "append", path: [...scope.path, "end"], value: from })
    return this.change({ do: "append", path: [...scope.path, "edges"], value: { from, to } })
  }

  async remove() {
    const { edge, node, path } = this.chosen
    this.chosen = null
    if (edge) await this.removeEdge(edge)
    else await this.change({ do: "drop", graph: this.scopeAt(path.slice(0, -1)).path, node: node.name })
  }

  removeEdge(edge) {
    return this.change(this.removal(edge))
  }

  removal({ path }) {
    const isAlone = ["start", "end"].includes(path[path.length - 2]) && !Array.isArray(this.given(path.slice(0, -1)))
    return { do: "remove", path: isAlone ? path.slice(0, -1) : path }
  }

  // Whether `start` or `end` is written as a list cannot be seen in the drawing: the text says it.
  given(path) {
    const line = this.view.text.split("\n").find((each) => each.trim().startsWith(`${path[path.length - 1]}:`) || each.trim().startsWith(`"${path[path.length - 1]}"`))
    return line && !/:\s*(\[|$|#)/.test(line) ? "" : []
  }

  async rename(path, scope, name) {
    if (!name.trim() || name === path[path.length - 1]) return
    const edit = { do: "rename", graph: scope.path, node: path[path.length - 1], name: name.trim() }
    this.chosen = null
    if (await this.change(edit)) this.chooseNode([...path.slice(0, -1), edit.name])
  }

  mark(key) {
    if (!this.marked.delete(key)) this.marked.add(key)
    this.markShown()
  }

  markShown() {
    for (const [key, { made }] of this.graph.nodes) made.classList.toggle("is-marked", this.marked.has(key))
    this.grouping.disabled = !this.marked.size || Boolean(this.fixed)
  }

  async group() {
    const paths = [...this.marked].map((key) => JSON.parse(key)), around = paths[0].slice(0, -1)
    const names = paths.filter((path) => keyOf(path.slice(0, -1)) === keyOf(around)).map((path) => path[path.length - 1])
    const scope = this.scopeAt(around), known = new Set(scope.nodes.map((node) => node.name))
    let name = "group"
    for (let at = 2; known.has(name); at += 1) name = `group${at}`
    this.marked.clear()
    this.graph.open.add(keyOf([...around, name]))
    if (await this.change({ do: "group", graph: scope.path, nodes: names, name })) this.chooseNode([...around, name])
  }

  ungroup(path, scope) {
    this.chosen = null
    return this.change({ do: "ungroup", graph: scope.path, node: path[path.length - 1] })
  }

  // ---- dragging: a type into the graph, a node onto another, a frame around nodes

  dragging() {
    const at = (event) => {
      const found = document.elementFromPoint(event.clientX, event.clientY)
      const made = found && found.closest("[data-key], [data-end]")
      if (!made || !this.place.contains(made)) return { inside: Boolean(found && this.place.contains(found)) }
      return made.dataset.end ? { end: made.dataset.end, inside: true } : { path: JSON.parse(made.dataset.key), inside: true }
    }
    const drag = (event, { moved, dropped }) => {
      let isMoved = this.isDragged = false
      const { clientX, clientY } = event
      const move = (now) => {
        if (!isMoved && Math.hypot(now.clientX - clientX, now.clientY - clientY) < 6) return
        isMoved = true
        moved(now)
      }
      const stop = (now) => {
        window.removeEventListener("pointermove", move)
        window.removeEventListener("pointerup", stop)
        window.removeEventListener("pointercancel", stop)
        this.isDragged = isMoved
        dropped(now, isMoved && now.type === "pointerup")
      }
      window.addEventListener("pointermove", move)
      window.addEventListener("pointerup", stop)
      window.addEventListener("pointercancel", stop)
    }
    this.place.addEventListener("click", (event) => { // what ends a drag chooses nothing
      if (this.isDragged) event.stopPropagation()
      this.isDragged = false
    }, true)
    this.palette.addEventListener("pointerdown", (event) => {
      const { type } = event.target.dataset
      if (!type) return
      const ghost = make("div", { class: "ghost" }, type)
      drag(event, {
        moved: (now) => {
          if (!ghost.isConnected) document.body.append(ghost)
          Object.assign(ghost.style, { left: `${now.clientX + 8}px`, top: `${now.clientY + 8}px` })
        },
        dropped: (now, isMoved) => {
          ghost.remove()
          const target = at(now)
          if (!isMoved || !target.inside) return
          const path = target.path ? this.innermost(target.path) : []
          this.add(type, path, this.plan ? this.scopeAt(path) : null)
        },
      })
    })
    this.place.addEventListener("pointerdown", (event) => {
      const { place } = this, isGround = event.target === place
      if (!this.graph || event.button || event.pointerType === "touch") return
      if (isGround && (event.offsetX >= place.clientWidth || event.offsetY >= place.clientHeight)) return // a scroll bar
      const from = at(event)
      const isNode = from.end || (from.path && !this.graph.named.get(keyOf(from.path)).isOpen)
      const point = (now) => {
        const frame = this.graph.picture.getBoundingClientRect()
        return [(now.clientX - frame.left) / this.graph.scale, (now.clientY - frame.top) / this.graph.scale]
      }
      const [x, y] = point(event)
      const drawn = isNode ? shape("path", { class: "edge drawing" }) : shape("rect", { class: "frame" })
      event.preventDefault()
      drag(event, {
        moved: (now) => {
          const [a, b] = point(now)
          if (!drawn.isConnected) this.graph.picture.append(drawn)
          if (isNode) drawn.setAttribute("d", `M${x} ${y} L${a} ${b}`)
          else for (const [key, value] of Object.entries({ x: Math.min(x, a), y: Math.min(y, b), width: Math.abs(a - x), height: Math.abs(b - y) })) drawn.setAttribute(key, value)
        },
        dropped: (now, isMoved) => {
          drawn.remove()
          if (!isMoved) return
          if (isNode) return this.dropped(from, at(now))
          const [a, b] = point(now)
          this.marked.clear()
          for (const box of this.graph.boxes) {
            const isIn = box.x >= Math.min(x, a) && box.x + box.width <= Math.max(x, a) && box.y >= Math.min(y, b) && box.y + box.height <= Math.max(y, b)
            if (isIn && !this.marked.has(keyOf(box.path.slice(0, -1)))) this.marked.add(box.key)
          }
          this.markShown()
        },
      })
    })
  }

  // The innermost graph that is drawn at a node: what it holds, if it is open, or the one around it.
  innermost(path) {
    return this.graph.named.get(keyOf(path)).isOpen ? path : path.slice(0, -1)
  }

  dropped(from, to) {
    if (from.end === "@entry" && to.path && to.path.length === 1) return this.connect("@entry", to.path[0], [])
    if (to.end === "@exit" && from.path && from.path.length === 1) return this.connect(from.path[0], "@exit", [])
    if (!from.path || !to.path) return null
    const around = from.path.slice(0, -1)
    if (keyOf(around) !== keyOf(to.path.slice(0, -1))) return problem(new Error("An edge joins two nodes of one graph."))
    return this.connect(from.path[from.path.length - 1], to.path[to.path.length - 1], around)
  }
}
