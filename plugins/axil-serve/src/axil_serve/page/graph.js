// The graph of a plan as SVG, where the server's layout puts it; cycles and graphs inside nodes folded or open.
// Only what is in sight is drawn; far away the nodes of one state are one shape.
import { renew } from "./dom.js"

const SVG = "http://www.w3.org/2000/svg"
const LINE = 15
const FAR = 0.4
const MARGIN = 200
const MANY = 300
const LEAST = 0.7 // smaller than this a graph is not drawn at first

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

export class GraphView {
  // `chosen(what)` is called with {path, node} of a node or {edge, scope} when one is chosen;
  // `layoutOf(paths, path)` promises the layout with these nodes open; `path`: of the one that was turned.
  constructor(place, chosen, layoutOf) {
    Object.assign(this, { place, chosen, layoutOf, scale: 1, states: new Map(), carried: new Map(), current: null, asked: 0 })
    place.addEventListener("scroll", () => this.later())
    new ResizeObserver(() => this.later()).observe(place)
  }

  // Draw a plan where a layout puts it.
  use(plan, layout) {
    const isFirst = !this.plan
    this.plan = plan
    this.placed(layout)
    this.open ??= new Set(this.boxes.filter((box) => box.isOpen).map((box) => box.key))
    if (!isFirst) return
    if (this.boxes.length > MANY) this.fit()
    else if (this.place.clientWidth) this.zoom(Math.max(LEAST, Math.min(1, (this.place.clientWidth - 8) / this.width)))
    const { x, width } = this.ends[0] // where the graph begins is in sight
    this.place.scrollLeft = (x + width / 2) * this.scale - this.place.clientWidth / 2
  }

  // The paths of the nodes that are open, as the server takes them.
  get opened() {
    return [...this.open].map((key) => JSON.parse(key))
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
    const open = new Set()
    const visit = (scope, path) => scope.nodes.forEach((node) => {
      if (!node.inside) return
      const own = [...path, node.name]
      open.add(keyOf(own))
      visit(node.inside, own)
    })
    if (isOpen) visit(this.plan, [])
    return this.fold(open)
  }

  toggle(path) {
    const open = new Set(this.open), key = keyOf(path)
    if (!open.delete(key)) open.add(key)
    return this.fold(open, path)
  }

  async fold(open, path = null) {
    const asked = this.asked += 1
    this.open = open
    const found = await this.layoutOf(this.opened, path)
    if (!found || asked !== this.asked) return // another one is asked for
    if (found.open) this.open = new Set(found.open.map(keyOf))
    this.placed(found.layout)
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

  placed(layout) {
    const nodes = new Map(), edges = new Map()
    const visit = (scope, path) => {
      for (const edge of scope.edges) edges.set(keyOf([...path, edge.name]), edge)
      for (const node of scope.nodes) {
        const own = [...path, node.name]
        nodes.set(keyOf(own), node)
        if (node.inside) visit(node.inside, own)
      }
    }
    visit(this.plan, [])
    const boxes = layout.boxes.map((box) => ({ ...box, key: keyOf(box.path), isOpen: box.is_open }))
    this.ends = boxes.filter((box) => box.is_end)
    this.boxes = boxes.filter((box) => !box.is_end)
    for (const box of this.boxes) box.node = nodes.get(box.key)
    this.lines = layout.lines.map((line) => ({ ...line, key: keyOf([...line.scope, line.name]) }))
    for (const line of this.lines) line.edge = edges.get(line.key)
    Object.assign(this, { width: layout.width, height: layout.height, nodes: new Map(), edges: new Map() })
    this.named = new Map(this.boxes.map((box) => [box.key, box]))
    this.draw()
  }

  draw() {
    // lines lie over open scopes and under nodes
    this.groups = { far: shape("g", {}), scopes: [], lines: shape("g", {}), nodes: shape("g", {}) }
    const deepest = this.boxes.reduce((most, box) => Math.max(most, box.path.length), 0)
    for (let depth = 0; depth < deepest; depth += 1) this.groups.scopes.push(shape("g", {}))
    for (const { path, title, x, y, width, height } of this.ends) {
      this.groups.nodes.append(shape("g", path.length > 1 ? { class: "end" } : { class: "end", "data-end": path[0] },
        shape("rect", { x, y, width, height, rx: height / 2, class: "box" }),
        words(title, { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle", class: "small" })))
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
    const { key } = this.place.contains(document.activeElement) ? document.activeElement.dataset : {}
    this.paint()
    renew(this.place, this.picture)
    if (key && !this.place.contains(document.activeElement)) this.reveal(key, true) // it lies elsewhere now
  }

  // From far away a click goes near to the place.
  approach(event) {
    const frame = this.picture.getBoundingClientRect(), { place } = this
    const x = (event.clientX - frame.left) / this.scale, y = (event.clientY - frame.top) / this.scale
    this.zoom(1)
    place.scrollTo(x - place.clientWidth / 2, y - place.clientHeight / 2)
    this.paint()
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
    const made = shape("g", { class: box.isOpen ? "node inside" : "node", tabindex: 0, role: "button", "data-key": box.key })
    const lines = box.title.split("\n"), last = box.isOpen ? 16 + (lines.length - 1) * LINE : 38 // of an open one the last is free
    const note = words("", { x: box.x + 10, y: box.y + last, class: "small" })
    made.append(shape("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 8, class: "box" }))
    lines.forEach((line, at) => made.append(words(line, { x: box.x + 10, y: box.y + (box.isOpen ? 16 : 20) + at * LINE, class: box.isOpen ? "small" : "" })))
    made.append(note)
    if (isFoldable && !box.isOpen) made.append(words("⊞", { x: box.x + box.width - 18, y: box.y + 38, class: "small" }))
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
    const group = box.isOpen ? this.groups.scopes[box.path.length - 1] : this.groups.nodes
    group.append(made)
    return { made, note, box, parts: [made] }
  }

  // Move the focus to the next node in a direction.
  step(from, key) {
    const middle = (box) => [box.x + box.width / 2, box.y + (box.isOpen ? 0 : box.height / 2)]
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
    const { edge, d, label: text, label_at: at } = each
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
    const parts = [drawn, made, ...(at ? [words(text, { x: at[0], y: at[1] + 4, "text-anchor": "middle", class: "small label" })] : [])]
    this.groups.lines.append(...parts)
    return { made, drawn, parts }
  }

  choose(path) {
    this.current = path === null ? null : keyOf(path)
    this.update()
  }

  // `states`: by key of a node {state, note}; `carried`: by key of an edge how often it was live,
  // -1 for one that was dead. `isNews`: it has just happened, and what is carried now moves.
  show(states, carried, isNews = false) {
    this.before = isNews ? this.carried : carried
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
      note.textContent = short(found.note, Math.floor((box.width - (box.node.inside ? 36 : 20)) / 6))
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
