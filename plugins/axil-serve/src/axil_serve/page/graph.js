// The graph of a plan as SVG: a row for each level, cycles and graphs inside nodes folded or open.
// Only what is in sight is drawn; far away the nodes of one state are one shape.

const SVG = "http://www.w3.org/2000/svg"
const NODE = { width: 150, height: 46 }
const GAP = { x: 28, y: 46 }
const PAD = 16
const HEAD = 26
const TOP = 34
const WIDEST = 14
const MOST_UNFOLDED = 60
const FAR = 0.4
const MARGIN = 200

export const keyOf = (path) => JSON.stringify(path)

export function shape(name, attributes, ...inside) {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...inside)
  return made
}

export function words(text, attributes) {
  const made = shape("text", attributes)
  made.textContent = text
  return made
}

export const short = (text, most) => (text.length > most ? text.slice(0, Math.max(1, most - 1)) + "…" : text)

// ---------------------------------------------------------------------------------- layout

// Rows in which each node stands near those that it is connected to.
function ordered(rows, scope) {
  const near = new Map()
  for (const edge of scope.edges) {
    for (const [from, to] of [[edge.source, edge.target], [edge.target, edge.source]]) {
      if (!near.has(from)) near.set(from, [])
      near.get(from).push(to)
    }
  }
  const place = new Map()
  const put = (row) => row.forEach((box, at) => place.set(box.node.name, (at + 0.5) / row.length))
  rows.forEach(put)
  for (const way of [rows, [...rows].reverse(), rows]) {
    for (const row of way) {
      const wanted = new Map(row.map((box) => {
        const found = (near.get(box.node.name) || []).filter((name) => place.has(name)).map((name) => place.get(name))
        return [box, found.length ? found.reduce((sum, each) => sum + each, 0) / found.length : place.get(box.node.name)]
      }))
      row.sort((a, b) => wanted.get(a) - wanted.get(b))
      put(row)
    }
  }
  return rows
}

// A row that is too wide is continued below.
function wrapped(row) {
  if (row.length <= WIDEST) return [row]
  const most = Math.max(WIDEST, Math.ceil(Math.sqrt(row.length) * 1.3))
  return Array.from({ length: Math.ceil(row.length / most) }, (_, at) => row.slice(at * most, (at + 1) * most))
}

// Sizes and places of the nodes of one scope, without the place of the scope itself.
function arranged(scope, path, open) {
  const rows = new Map()
  for (const node of scope.nodes) {
    const own = [...path, node.name]
    const inner = node.inside && open.has(keyOf(own)) ? arranged(node.inside, own, open) : null
    const size = inner ? { width: inner.width + 2 * PAD, height: inner.height + HEAD + PAD } : NODE
    if (!rows.has(node.level)) rows.set(node.level, [])
    rows.get(node.level).push({ node, path: own, key: keyOf(own), inner, ...size })
  }
  const levels = [...rows.keys()].sort((a, b) => a - b).map((level) => rows.get(level))
  const all = ordered(levels, scope).flatMap(wrapped)
  const widths = all.map((row) => row.reduce((sum, box) => sum + box.width + GAP.x, -GAP.x))
  const width = Math.max(NODE.width, ...widths) + 2 * PAD
  let y = PAD
  all.forEach((row, at) => {
    let x = (width - widths[at]) / 2
    for (const box of row) {
      Object.assign(box, { x, y })
      x += box.width + GAP.x
    }
    y += Math.max(...row.map((box) => box.height)) + GAP.y
  })
  const boxes = all.flat()
  const named = new Map(boxes.map((box) => [box.node.name, box]))
  const scopes = boxes.filter((box) => box.node.inside)
  return { scope, path, boxes, named, scopes, width, height: y - GAP.y + PAD }
}

const holds = (node, name) =>
  node.inside && node.inside.kind === "cycle" &&
  node.inside.nodes.some((each) => each.name === name || holds(each, name))

// The box in which an edge begins or ends: the innermost one that is open to view.
function boxOf(layout, name) {
  if (layout.named.has(name)) return layout.named.get(name)
  for (const box of layout.scopes) {
    if (holds(box.node, name)) return box.inner ? boxOf(box.inner, name) : box
  }
  return null
}

function placed(layout, x, y) {
  for (const box of layout.boxes) {
    box.x += x
    box.y += y
    if (box.inner) placed(box.inner, box.x + PAD, box.y + HEAD)
  }
}

function line(from, to, index) {
  const x1 = from.x + from.width / 2, x2 = to.x + to.width / 2
  const y1 = from.y + from.height, y2 = to.y
  if (y2 >= y1) {
    const middle = (y1 + y2) / 2
    if (y2 - y1 > NODE.height + 2 * GAP.y) { // past other rows: beside them
      const side = Math.max(x1, x2) + NODE.width * (0.6 + 0.15 * (index % 3))
      return `M${x1} ${y1} C${side} ${y1 + GAP.y} ${side} ${y2 - GAP.y} ${x2} ${y2}`
    }
    return `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`
  }
  const side = Math.max(from.x + from.width, to.x + to.width) + 14 + 7 * (index % 3)
  const a = from.y + from.height / 2, b = to.y + to.height / 2
  return `M${from.x + from.width} ${a} C${side + 12} ${a} ${side + 12} ${b} ${to.x + to.width} ${b}`
}

// ---------------------------------------------------------------------------------- drawing

export class GraphView {
  // `chosen(what)` is called with {path, node} of a node or {edge, scope} when one is chosen.
  constructor(place, plan, chosen) {
    Object.assign(this, { place, chosen, scale: 1, states: new Map(), carried: new Map(), current: null })
    this.open = new Set()
    place.addEventListener("scroll", () => this.later())
    new ResizeObserver(() => this.later()).observe(place)
    this.use(plan)
  }

  // Draw another plan; what is open stays open.
  use(plan) {
    const isFirst = !this.plan
    this.plan = plan
    if (isFirst) this.all(true)
    else this.draw()
    if (isFirst && this.boxes.length > 300) this.fit()
  }

  later() {
    if (this.isDue) return
    this.isDue = true
    requestAnimationFrame(() => {
      this.isDue = false
      this.paint()
    })
  }

  all(isOpen) {
    this.open.clear()
    let count = 0
    const visit = (scope, path) => scope.nodes.forEach((node) => {
      count += 1
      if (!node.inside) return
      const own = [...path, node.name]
      if (isOpen) this.open.add(keyOf(own))
      visit(node.inside, own)
    })
    visit(this.plan, [])
    if (isOpen && count > MOST_UNFOLDED && !this.boxes) this.open.clear() // at first, a large one is folded
    this.draw()
  }

  toggle(path) {
    const key = keyOf(path)
    if (!this.open.delete(key)) this.open.add(key)
    this.draw()
  }

  zoom(scale) {
    const { place } = this, before = this.scale
    this.scale = Math.min(2, Math.max(0.03, scale))
    const x = (place.scrollLeft + place.clientWidth / 2) / before, y = (place.scrollTop + place.clientHeight / 2) / before
    this.size()
    place.scrollTo(x * this.scale - place.clientWidth / 2, y * this.scale - place.clientHeight / 2)
    this.paint()
  }

  fit() {
    this.zoom(Math.min(1, (this.place.clientWidth - 8) / this.width, (this.place.clientHeight - 8) / this.height))
  }

  size() {
    this.picture.setAttribute("width", this.width * this.scale)
    this.picture.setAttribute("height", this.height * this.scale)
  }

  draw() {
    const layout = arranged(this.plan, [], this.open)
    placed(layout, 0, TOP)
    Object.assign(this, { boxes: [], lines: [], nodes: new Map(), edges: new Map() })
    this.width = layout.width + 40
    this.height = layout.height + 70
    this.ends = {
      "@entry": { x: layout.width / 2 - 40, y: 4, width: 80, height: 22 },
      "@exit": { x: layout.width / 2 - 40, y: layout.height + 42, width: 80, height: 22 },
    }
    this.collect(layout, this.ends, 0)
    this.named = new Map(this.boxes.map((box) => [box.key, box]))
    // lines lie over open scopes and under nodes
    this.groups = { far: shape("g", {}), scopes: [], lines: shape("g", {}), nodes: shape("g", {}) }
    const deepest = Math.max(0, ...this.boxes.map((box) => box.depth))
    for (let depth = 0; depth <= deepest; depth += 1) this.groups.scopes.push(shape("g", {}))
    for (const [name, label] of [["@entry", "input"], ["@exit", "output"]]) {
      const end = this.ends[name]
      this.groups.nodes.append(shape("g", { class: "end", "data-end": name },
        shape("rect", { x: end.x, y: end.y, width: 80, height: 22, rx: 11, class: "box" }),
        words(label, { x: end.x + 40, y: end.y + 15, "text-anchor": "middle", class: "small" })))
    }
    const arrow = shape(
      "marker",
      { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" },
      shape("path", { d: "M0 0 L8 4 L0 8 z", fill: "context-stroke" }),
    )
    this.picture = shape(
      "svg",
      { viewBox: `0 0 ${this.width} ${this.height}`, role: "group", "aria-label": "graph" },
      shape("defs", {}, arrow), ...this.groups.scopes, this.groups.lines, this.groups.far, this.groups.nodes,
    )
    this.picture.addEventListener("click", (event) => this.scale < FAR && this.approach(event))
    this.size()
    this.place.replaceChildren(this.picture)
    this.paint()
  }

  // From far away a click goes near to the place.
  approach(event) {
    const frame = this.picture.getBoundingClientRect(), { place } = this
    const x = (event.clientX - frame.left) / this.scale, y = (event.clientY - frame.top) / this.scale
    this.zoom(1)
    place.scrollTo(x - place.clientWidth / 2, y - place.clientHeight / 2)
    this.paint()
  }

  collect(layout, ends, depth) {
    for (const box of layout.boxes) {
      box.depth = depth
      this.boxes.push(box)
    }
    layout.scope.edges.forEach((edge, at) => {
      const from = edge.source === "@entry" ? ends && ends["@entry"] : boxOf(layout, edge.source)
      const to = edge.target === "@exit" ? ends && ends["@exit"] : boxOf(layout, edge.target)
      const inside = layout.scopes.some((box) => holds(box.node, edge.source) && holds(box.node, edge.target))
      if (!from || !to || inside || (from === to && edge.source !== edge.target)) return
      const left = Math.min(from.x, to.x), top = Math.min(from.y, to.y)
      this.lines.push({ edge, scope: layout.path, key: keyOf([...layout.path, edge.name]), d: line(from, to, at), from, to,
        x: left, y: top, width: Math.max(from.x + from.width, to.x + to.width) - left + NODE.width,
        height: Math.max(from.y + from.height, to.y + to.height) - top })
    })
    for (const box of layout.boxes) if (box.inner) this.collect(box.inner, null, depth + 1)
  }

  // Draw what is in sight, and remove what is not.
  paint() {
    const { place, scale } = this
    const isFar = scale < FAR
    this.groups.far.replaceChildren(...(isFar ? this.overview() : []))
    const x = place.scrollLeft / scale - MARGIN, y = place.scrollTop / scale - MARGIN
    const right = x + place.clientWidth / scale + 2 * MARGIN, bottom = y + place.clientHeight / scale + 2 * MARGIN
    const isSeen = (box) => !isFar && box.x < right && box.y < bottom && box.x + box.width > x && box.y + box.height > y
    for (const [all, kept, made] of [[this.boxes, this.nodes, this.drawnBox], [this.lines, this.edges, this.drawnLine]]) {
      for (const each of all) {
        const known = kept.get(each.key)
        if (isSeen(each)) {
          if (!known) kept.set(each.key, made.call(this, each))
        } else if (known && !known.made.contains(document.activeElement)) {
          for (const part of known.parts) part.remove()
          kept.delete(each.key)
        }
      }
    }
    this.update()
  }

  // All nodes of one state as one shape, and all edges as one.
  overview() {
    const paths = new Map()
    for (const box of this.boxes) {
      const state = (this.states.get(box.key) || { state: "pending" }).state
      const d = `M${box.x} ${box.y}h${box.width}v${box.height}h${-box.width}z`
      paths.set(state, (paths.get(state) || "") + d)
    }
    this.far ??= new WeakMap()
    if (!this.far.has(this.lines)) this.far.set(this.lines, this.lines.map((each) => each.d).join(""))
    return [shape("path", { d: this.far.get(this.lines), class: "edge" }),
      ...[...paths].map(([state, d]) => shape("g", { "data-state": state }, shape("path", { d, class: "box" })))]
  }

  drawnBox(box) {
    const isFoldable = Boolean(box.node.inside)
    const made = shape("g", { class: box.inner ? "node inside" : "node", tabindex: 0, role: "button", "data-key": box.key })
    const at = box.inner ? { x: box.x + box.width - 12, y: box.y + 18, "text-anchor": "end" } : { x: box.x + 10, y: box.y + 36 }
    const note = words("", { ...at, class: "small" })
    made.append(
      shape("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 8, class: "box" }),
      words(short(box.node.name, Math.floor((box.width - (box.inner ? 90 : 20)) / 7.5)), { x: box.x + 10, y: box.y + 18 }),
      note,
    )
    if (isFoldable && !box.inner) made.append(words("⊞", { x: box.x + box.width - 20, y: box.y + 18, class: "small" }))
    const choose = () => this.chosen({ path: box.path, node: box.node })
    made.addEventListener("click", (event) => {
      event.stopPropagation()
      choose()
    })
    made.addEventListener("dblclick", () => isFoldable && this.toggle(box.path))
    made.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault()
        choose()
      } else if (event.key === "f" && isFoldable) this.toggle(box.path)
      else if (event.key.startsWith("Arrow")) {
        event.preventDefault()
        this.step(box, event.key)
      }
    })
    const group = box.inner ? this.groups.scopes[box.depth] : this.groups.nodes
    group.append(made)
    return { made, note, box, parts: [made] }
  }

  // Move the focus to the next node in a direction.
  step(from, key) {
    const middle = (box) => [box.x + box.width / 2, box.y + (box.inner ? 0 : box.height / 2)]
    const [x, y] = middle(from)
    let best = null, least = Infinity
    for (const box of this.boxes) {
      const [a, b] = middle(box), dx = a - x, dy = b - y
      const [ahead, aside] = { ArrowRight: [dx, dy], ArrowLeft: [-dx, dy], ArrowDown: [dy, dx], ArrowUp: [-dy, dx] }[key]
      const far = ahead + 2 * Math.abs(aside)
      if (ahead > 1 && far < least) [best, least] = [box, far]
    }
    if (best) this.reveal(best.key, true)
  }

  // Bring a node into sight, with the focus if wanted.
  reveal(key, isFocused = false) {
    const box = this.named.get(key), { place, scale } = this
    if (!box) return
    if (scale < FAR) this.zoom(1)
    const left = box.x * this.scale, top = box.y * this.scale, width = box.width * this.scale
    if (left < place.scrollLeft || left + width > place.scrollLeft + place.clientWidth) place.scrollLeft = left - place.clientWidth / 2 + width / 2
    if (top < place.scrollTop || top + 60 > place.scrollTop + place.clientHeight) place.scrollTop = top - place.clientHeight / 2
    this.paint()
    if (isFocused && this.nodes.has(key)) this.nodes.get(key).made.focus({ preventScroll: true })
  }

  drawnLine(each) {
    const { edge, d } = each
    const drawn = shape("path", { d, class: edge.trigger ? "edge" : "edge is-data", "marker-end": "url(#arrow)" })
    const label = `edge ${edge.source} to ${edge.target}${edge.label ? `: ${edge.label}` : ""}`
    const made = shape("path", { d, class: "hit", tabindex: 0, role: "button", "aria-label": label })
    const title = shape("title", {})
    title.textContent = label
    made.append(title)
    const choose = () => this.chosen({ edge, scope: each.scope })
    made.addEventListener("click", (event) => {
      event.stopPropagation()
      choose()
    })
    made.addEventListener("keydown", (event) => event.key === "Enter" && choose())
    drawn.addEventListener("animationend", () => drawn.classList.remove("moving"))
    this.groups.lines.append(drawn, made)
    return { made, drawn, parts: [drawn, made] }
  }

  choose(path) {
    this.current = path === null ? null : keyOf(path)
    this.update()
  }

  // `states`: by key of a node {state, note}; `carried`: by key of an edge how often it was live,
  // -1 for one that was dead.
  show(states, carried) {
    this.before = this.carried
    this.states = states
    this.carried = carried
    if (this.scale < FAR) this.groups.far.replaceChildren(...this.overview())
    this.update()
    this.before = carried
  }

  update() {
    const before = this.before || this.carried
    for (const [key, { made, note, box }] of this.nodes) {
      const found = this.states.get(key) || { state: "pending", note: "" }
      made.classList.toggle("is-chosen", key === this.current)
      if (made.dataset.state === found.state && made.dataset.note === found.note) continue
      Object.assign(made.dataset, found)
      note.textContent = short(found.note, Math.floor((box.width - 20) / (box.inner ? 12 : 6)))
      made.setAttribute("aria-description", `${box.node.name}: ${found.state}`)
    }
    for (const [key, { drawn }] of this.edges) {
      const times = this.carried.get(key) || 0
      drawn.classList.toggle("is-live", times > 0)
      drawn.classList.toggle("is-dead", times < 0)
      if (times > 0 && times !== (before.get(key) || 0)) drawn.classList.add("moving")
    }
  }
}
