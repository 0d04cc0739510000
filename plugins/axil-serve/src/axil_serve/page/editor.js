// The editor of a workflow file: its text, its graph, forms for nodes and edges, and what the check finds.
import { button, details, make, parsed } from "./dom.js"
import { GraphView, keyOf, shape } from "./graph.js"
import { onKeys, page, problem, show } from "./look.js"
import { scopeOf } from "./run.js"

const LINE = 20
const WAIT = 250
const MOST_UNDONE = 200
const LONG_TEXT = 60
const TEXTS = ["instructions", "code", "template", "prompt_template", "content", "description"]
const drafts = new Map() // what was not saved, by the names of files
const EMPTY = "version: 1\ngraph:\n  start: []\n  nodes: []\n  edges: []\n"

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
  const name = make("input", { type: "text", id: "name", placeholder: "flow.yaml" })
  const form = make("form", { class: "bar", onsubmit: (event) => {
    event.preventDefault()
    if (name.value.trim()) location.hash = `edit=${encodeURIComponent(name.value.trim())}`
  } }, make("label", { for: "name" }, "New file "), name, make("button", {}, "Begin"))
  show(make("nav", {}, make("a", { href: "#" }, "← all runs")), make("h1", {}, "Workflow files"),
    make("ul", {}, files.map((each) => make("li", {}, make("a", { href: `#edit=${encodeURIComponent(each)}` }, each)))), form)
}

// ---------------------------------------------------------------------------------- schemas

// What a setting may be: its type for a form, the words that it may be, and whether texts are among it.
function kindOf(schema, defs) {
  if (!schema || typeof schema !== "object") return { kind: "any" }
  if (schema.$ref) return kindOf(defs[schema.$ref.split("/").pop()], defs)
  if (schema.enum) return { kind: "choice", words: schema.enum }
  if (schema.anyOf) {
    const kinds = schema.anyOf.filter((each) => each.type !== "null").map((each) => kindOf(each, defs))
    if (kinds.length === 1) return kinds[0]
    return { kind: "any", hasText: kinds.some((each) => ["text", "choice"].includes(each.kind)), inner: kinds.find((each) => each.schema) }
  }
  if (schema.type === "boolean") return { kind: "choice", words: [true, false] }
  if (schema.type === "string") return { kind: "text", hasText: true }
  if (schema.type === "integer" || schema.type === "number") return { kind: "number" }
  return { kind: "any", schema }
}

// The settings of a node type: by name their schemas, and which are required.
function settingsOf(schema, type) {
  const found = (schema.$defs.nodes.allOf || []).find((each) => each.if.properties.type.const === type)
  const own = found && found.then.properties.config
  const config = own && (own.properties ? own : (own.anyOf || []).find((each) => each.properties))
  return { properties: (config && config.properties) || {}, required: (config && config.required) || [] }
}

function emptyOf(schema, defs) {
  const { kind, words, hasText } = kindOf(schema, defs)
  if (kind === "choice") return words[0]
  if (kind === "number") return 1
  if (kind === "text" || hasText) return ""
  return schema.type === "array" ? [] : {}
}

// ------------------------------------------------------------------------------------- text

// A text with the numbers of its lines, and marks on those in which something was found.
class TextView {
  constructor(changed) {
    this.area = make("textarea", { class: "code-text", spellcheck: "false", wrap: "off", "aria-label": "text of the file",
      autocapitalize: "off", autocomplete: "off" })
    this.numbers = make("pre", { class: "code-numbers", "aria-hidden": "true" })
    this.marks = make("div", { class: "code-marks", "aria-hidden": "true" })
    this.place = make("div", { class: "code" }, this.marks, this.numbers, this.area)
    this.area.addEventListener("input", () => changed(this.area.value))
    this.area.addEventListener("scroll", () => this.scrolled())
    this.area.addEventListener("keydown", (event) => { // Escape, then Tab leaves the text
      if (event.key === "Escape") this.isLeaving = true
      else if (event.key === "Tab" && !event.shiftKey && !this.isLeaving) {
        event.preventDefault()
        this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end")
        changed(this.area.value)
      } else if (event.key !== "Tab") this.isLeaving = false
    })
  }

  get text() {
    return this.area.value
  }

  set text(text) {
    if (this.area.value !== text) {
      const { scrollTop, scrollLeft } = this.area
      this.area.value = text
      Object.assign(this.area, { scrollTop, scrollLeft })
    }
    this.counted()
  }

  counted() {
    const count = this.area.value.split("\n").length
    if (count === this.count) return
    this.count = count
    this.numbers.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n")
    this.scrolled()
  }

  scrolled() {
    this.numbers.scrollTop = this.area.scrollTop
    this.marks.style.transform = `translateY(${-this.area.scrollTop}px)`
  }

  mark(problems) {
    this.marks.replaceChildren(...problems.filter((each) => each.line).map((each) => {
      const mark = make("div", { class: `mark is-${each.severity}` })
      mark.style.top = `${(each.line - 1) * LINE + 8}px`
      return mark
    }))
  }

  goTo(line, isFocused = true) {
    const lines = this.area.value.split("\n"), start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0)
    if (isFocused) {
      this.area.focus()
      this.area.setSelectionRange(start, start + (lines[line - 1] || "").length)
    }
    this.area.scrollTop = Math.max(0, (line - 5) * LINE)
  }
}

// ------------------------------------------------------------------------------------- page

class EditorPage {
  constructor(name) {
    Object.assign(this, { name, digest: "", saved: "", problems: [], plan: null, chosen: null, marked: new Set(), done: [], undone: [], asked: 0, pending: Promise.resolve() })
    this.view = new TextView(() => this.typed())
    this.form = make("aside", { "aria-label": "form", class: "form" })
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
    const run = page.me.rights.includes("run") ? details("Run it", make("label", { for: "run-input" }, "Input: a text, or JSON"), input,
      button("Save and run", () => this.run(input.value))) : null
    const find = make("input", { type: "search", placeholder: "find a type", "aria-label": "find a node type", oninput: () => this.drawPalette(find.value) })
    show(
      make("nav", {}, make("a", { href: "#edit=" }, "← files")),
      make("header", {}, make("h1", {}, this.name), this.state),
      make("div", { class: "bar" }, button("Save", () => this.save()), button("Undo", () => this.undo()), button("Redo", () => this.redo()), run),
      make("div", { class: "editor" },
        make("section", { "aria-label": "text" }, this.view.place, this.list),
        make("section", { "aria-label": "drawing" }, this.notice,
          details("Nodes to add: drag one into the graph, or press it", find, this.palette),
          make("div", { class: "bar" }, this.grouping, button("Fit", () => this.graph && this.graph.fit()),
            make("span", { class: "soft" }, "drag from node to node: an edge; drag over the ground: mark nodes")),
          this.place, this.form)),
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
      let text = this.view.text
      for (const each of edits) text = (await page.server.post("/edit/change", { text, edit: each })).text
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
      this.draw()
    } catch (error) {
      problem(error)
    }
  }

  async save() {
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
    if (this.isChanged && !(await this.save())) return
    try {
      const body = { name: this.name }
      if (input.trim()) body.input = parsed(input)
      location.hash = `run=${(await page.server.post("/edit/run", body)).run_id}`
    } catch (error) {
      problem(error)
    }
  }

  pressed(event) {
    const isCommand = event.ctrlKey || event.metaKey, key = event.key.toLowerCase()
    if (isCommand && key === "s") this.save()
    else if (isCommand && key === "z" && !event.shiftKey) this.undo()
    else if (isCommand && (key === "y" || (key === "z" && event.shiftKey))) this.redo()
    else if (["Delete", "Backspace"].includes(event.key) && this.place.contains(event.target) && this.chosen) this.remove()
    else if (key === "m" && this.place.contains(event.target) && event.target.dataset.key) this.mark(event.target.dataset.key)
    else return
    event.preventDefault()
  }

  // ---- drawing

  drawStatus(word = "") {
    const errors = this.problems.filter((each) => each.severity === "error").length
    const found = errors ? `${errors} error${errors > 1 ? "s" : ""}` : this.problems.length ? `${this.problems.length} warnings` : "no findings"
    this.state.textContent = [word || found, this.isChanged ? "not saved" : "saved"].join(" · ")
  }

  draw() {
    this.drawStatus()
    this.view.mark(this.problems)
    this.list.replaceChildren(...this.problems.map((each) => make("p", { class: `finding is-${each.severity}` },
      button(each.line ? `line ${each.line}` : each.where || this.name, () => each.line && this.view.goTo(each.line), { class: "link" }),
      ` ${each.severity}: ${each.message} ${each.hint} `, make("span", { class: "soft" }, each.id))))
    this.place.classList.toggle("is-stale", Boolean(this.isStale))
    this.notice.textContent = this.fixed ? `The drawing shows the file, and cannot be edited: ${this.fixed}. Edit the text.` : ""
    this.notice.hidden = !this.fixed
    this.palette.parentElement.hidden = Boolean(this.fixed)
    if (!this.plan) return this.place.replaceChildren(make("p", { class: "soft" }, "The text holds no graph."))
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
    this.drawForm()
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
    const types = this.schema.$defs.nodes.properties.type.examples.filter((each) => each.includes(text.toLowerCase()))
    this.palette.replaceChildren(...types.map((type) => button(type, () => this.add(type, [], this.plan), { "data-type": type })))
  }

  choose(what) {
    this.chosen = what
    this.graph.choose(what && what.path ? what.path : null)
    this.formOf = ""
    this.drawForm()
    if (what) {
      const found = what.edge || what.node
      if (found.line) this.view.goTo(found.line, false)
    }
  }

  // ---- edits

  scopeAt(path) {
    return path.length ? scopeOf(this.plan, [...path, ""]) : this.plan
  }

  async add(type, path, scope) {
    if (!scope) return problem(new Error("The text holds no graph."))
    const { properties, required } = settingsOf(this.schema, type)
    const names = new Set(scope.nodes.map((node) => node.name))
    const base = type.split(/[./]/).pop()
    let name = base
    for (let at = 2; names.has(name); at += 1) name = `${base}${at}`
    const value = { id: name, type }
    const config = Object.fromEntries(required.map((key) => [key, emptyOf(properties[key], this.schema.$defs)]))
    if (required.length) value.config = config
    const edits = [{ do: "append", path: [...scope.path, "nodes"], value }]
    if (!scope.nodes.length) edits.push({ do: "append", path: [...scope.path, "start"], value: name })
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
    const graph = node ? this.scopeAt(path.slice(0, -1)).path : null
    const edit = edge ? { do: "remove", path: edge.path } : { do: "drop", graph, node: node.name }
    if (edge && ["start", "end"].includes(edge.path[edge.path.length - 2]) && !Array.isArray(this.given(edge.path.slice(0, -1)))) edit.path = edge.path.slice(0, -1)
    this.chosen = null
    await this.change(edit)
  }

  // Whether `start` or `end` is written as a list cannot be seen in the drawing: the text says it.
  given(path) {
    const line = this.view.text.split("\n").find((each) => each.trim().startsWith(`${path[path.length - 1]}:`) || each.trim().startsWith(`"${path[path.length - 1]}"`))
    return line && !/:\s*(\[|$|#)/.test(line) ? "" : []
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

  // ---- forms

  drawForm() {
    if (!this.chosen) return this.form.replaceChildren(make("p", { class: "soft" }, "Choose a node or an edge."))
    const { path, edge } = this.chosen
    const scope = path ? scopeOf(this.plan, path) : this.scopeAt(this.chosen.scope)
    const now = scope && (path ? scope.nodes.find((each) => each.name === path[path.length - 1])
      : scope.edges.find((each) => keyOf(each.path) === keyOf(edge.path)))
    if (!now) { // it is not in the text any more
      this.chosen = null
      return this.drawForm()
    }
    if (path) this.chosen.node = now
    else this.chosen.edge = now
    const key = JSON.stringify([this.fixed, path, now.given, now.path, this.of(now.path).map((each) => each.message)])
    if (key === this.formOf) return
    this.formOf = key
    const typed = this.form.contains(document.activeElement) ? document.activeElement : null
    this.form.replaceChildren(...(path ? this.nodeForm(path, now, scope) : this.edgeForm(now, scope)).filter(Boolean))
    const again = typed && typed.id ? document.getElementById(typed.id) : null
    for (const each of this.form.querySelectorAll("input, textarea")) each.dataset.given = each.value
    if (this.fixed) for (const each of this.form.querySelectorAll("input, textarea, select, button")) each.disabled = true
    if (!again) return
    if ("defaultValue" in typed && typed.value !== typed.dataset.given) again.value = typed.value // it is being typed
    again.focus()
  }

  nodeForm(path, node, scope) {
    const { properties, required } = settingsOf(this.schema, node.type)
    const config = typeof node.given.config === "object" && node.given.config ? node.given.config : {}
    const nodeSchema = this.schema.$defs.Node.properties
    const own = Object.keys(nodeSchema).filter((name) => !["id", "type", "config", "use"].includes(name))
    const field = (name) => this.field(name, properties[name], config[name], [...node.path, "config", name], required.includes(name))
    const first = Object.keys(properties).filter((name) => required.includes(name) || name in config)
    const rest = Object.keys(properties).filter((name) => !first.includes(name))
    const ofNode = (name) => this.field(name, nodeSchema[name], node.given[name], [...node.path, name])
    const set = own.filter((name) => name in node.given), unset = own.filter((name) => !(name in node.given))
    const isInLoop = reaches(scope, node.name)
    const limit = (scope.limits[node.name] || {}).rounds
    return [
      make("h2", {}, path.join(" / ")),
      ...this.of(node.path).map((each) => make("p", { class: `finding is-${each.severity}` }, `${each.message} ${each.hint}`)),
      this.labelled("id", make("input", { type: "text", id: "f-id", value: node.name, onchange: (event) => this.rename(path, scope, event.target.value) })),
      this.labelled("type", make("select", { id: "f-type", onchange: (event) => this.change({ do: "set", path: [...node.path, "type"], value: event.target.value }) },
        [...new Set([node.type, ...this.schema.$defs.nodes.properties.type.examples])].map((type) => make("option", { value: type, selected: type === node.type }, type)))),
      // an inner graph is edited in the drawing
      ...first.filter((name) => !(node.inside && holdsNodes(config[name]))).map(field), ...set.map(ofNode),
      isInLoop ? this.field("rounds of its loop", { type: "integer", description: "How often the loop that is entered here may turn." }, limit,
        [...scope.path, "cycle_limits", node.name, "rounds"]) : null,
      rest.length ? details("more settings", rest.map(field)) : null,
      details("of every node", unset.map(ofNode)),
      this.edgeAdder(path, node, scope),
      make("div", { class: "bar" }, button("Mark for a group", () => this.mark(keyOf(path))),
        node.inside ? button("Ungroup", () => this.ungroup(path, scope)) : null, button("Remove the node", () => this.remove())),
    ]
  }

  edgeForm(edge, scope) {
    const title = make("h2", {}, `${edge.source} → ${edge.target}`)
    const remove = make("div", { class: "bar" }, button("Remove the edge", () => this.remove()))
    if (!("from" in edge.given)) return [title, make("p", { class: "soft" }, "It is written as start or end of the graph."), remove]
    const properties = this.schema.$defs.Edge.properties
    const choice = (name) => this.labelled(name, make("select", { id: `f-${name}`, onchange: (event) => this.change({ do: "set", path: [...edge.path, name], value: event.target.value }) },
      scope.nodes.map((node) => make("option", { selected: node.name === edge.given[name] }, node.name))))
    const names = Object.keys(properties).filter((name) => !["from", "to"].includes(name))
    const field = (name) => this.field(name, properties[name], edge.given[name], [...edge.path, name])
    return [title, ...this.of(edge.path).map((each) => make("p", { class: `finding is-${each.severity}` }, `${each.message} ${each.hint}`)),
      choice("from"), choice("to"), field("condition"), ...names.filter((name) => name !== "condition" && name in edge.given).map(field),
      details("more settings", names.filter((name) => name !== "condition" && !(name in edge.given)).map(field)), remove]
  }

  edgeAdder(path, node, scope) {
    const target = make("select", { id: "f-edge" }, [...scope.nodes.map((each) => each.name), "@exit"].map((name) => make("option", {}, name)))
    return make("div", { class: "bar" }, make("label", { for: "f-edge" }, "edge to"), target,
      button("Add the edge", () => this.connect(node.name, target.value, path.slice(0, -1))))
  }

  async rename(path, scope, name) {
    if (!name.trim() || name === path[path.length - 1]) return
    const edit = { do: "rename", graph: scope.path, node: path[path.length - 1], name: name.trim() }
    this.chosen = null
    if (await this.change(edit)) this.chooseNode([...path.slice(0, -1), edit.name])
  }

  labelled(name, input, description = "", findings = []) {
    return make("div", { class: "field" }, make("label", { for: input.id }, name), input,
      description ? make("small", { class: "soft" }, description) : null,
      findings.map((each) => make("small", { class: `finding is-${each.severity}` }, each.message)))
  }

  // An input for a setting; an empty one removes the setting from the file.
  field(name, schema = {}, value, path, isRequired = false) {
    const { kind, words, hasText } = kindOf(schema, this.schema.$defs)
    const id = `f-${path.slice(2).join("-")}`
    const put = (given) => {
      if (given === undefined) return value === undefined ? null : this.change({ do: "remove", path })
      return JSON.stringify(given) === JSON.stringify(value) ? null : this.change({ do: "set", path, value: given })
    }
    const isText = typeof value === "string" && !(kind === "choice")
    const written = value === undefined || value === null ? "" : isText ? value : JSON.stringify(value)
    const read = (text) => {
      if (text === "" && !isRequired) return undefined
      if (kind === "text") return text
      if (kind === "number") return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text
      const found = parsed(text)
      return hasText && typeof found !== "object" && isText ? text : found
    }
    const onchange = (event) => put(read(event.target.value))
    let input
    if (kind === "choice" && (value === undefined || value === null || words.includes(value))) {
      const blank = schema.default === undefined || schema.default === null ? "not set" : `not set: ${JSON.stringify(schema.default)}`
      input = make("select", { id, onchange: (event) => put(event.target.value === "" ? undefined : JSON.parse(event.target.value)) },
        make("option", { value: "" }, blank), words.map((word) => make("option", { value: JSON.stringify(word), selected: word === value }, String(word))))
    } else if (written.includes("\n") || written.length > LONG_TEXT || TEXTS.includes(name)) {
      input = make("textarea", { id, rows: Math.min(12, Math.max(3, Math.ceil(written.length / 50))), onchange })
      input.value = written
    } else {
      const hint = schema.default === undefined || schema.default === null ? "" : JSON.stringify(schema.default)
      input = make("input", { type: "text", id, value: written, placeholder: hint, onchange })
    }
    const own = this.problems.filter((each) => each.path === wordsOf(path))
    return this.labelled(isRequired ? `${name} *` : name, input, schema.description || "", own)
  }
}

// A place as findings name it: nodes[2].config.model.
function wordsOf(path) {
  const shown = path.length > 1 && path[0] === "graph" ? path.slice(1) : path
  return shown.reduce((text, key) => (typeof key === "number" ? `${text}[${key}]` : text ? `${text}.${key}` : key), "")
}

const holdsNodes = (value) => Boolean(value && typeof value === "object" && Array.isArray(value.nodes))

// Whether a node can be reached from itself.
function reaches(scope, name) {
  const seen = new Set(), left = [name]
  while (left.length) {
    const from = left.pop()
    for (const edge of scope.edges) {
      if (edge.source !== from || !edge.trigger) continue
      if (edge.target === name) return true
      if (!seen.has(edge.target)) left.push(edge.target)
      seen.add(edge.target)
    }
  }
  return false
}
