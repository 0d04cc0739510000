// The graph of a plan as SVG: a row for each level, cycles and graphs inside nodes folded or open.

const SVG = "http://www.w3.org/2000/svg"
const NODE = { width: 150, height: 46 }
const GAP = { x: 28, y: 46 }
const PAD = 16
const HEAD = 26

export const keyOf = (path) => JSON.stringify(path)

function shape(name, attributes, ...inside) {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...inside)
  return made
}

function words(text, attributes) {
  const made = shape("text", attributes)
  made.textContent = text
  return made
}

const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text)

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
  const ordered = [...rows.keys()].sort((a, b) => a - b).map((level) => rows.get(level))
  const widths = ordered.map((row) => row.reduce((sum, box) => sum + box.width + GAP.x, -GAP.x))
  const width = Math.max(NODE.width, ...widths) + 2 * PAD
  let y = PAD
  ordered.forEach((row, at) => {
    let x = (width - widths[at]) / 2
    for (const box of row) {
      Object.assign(box, { x, y })
      x += box.width + GAP.x
    }
    y += Math.max(...row.map((box) => box.height)) + GAP.y
  })
  return { scope, path, boxes: ordered.flat(), width, height: y - GAP.y + PAD }
}

const holds = (node, name) =>
  node.inside && node.inside.kind === "cycle" &&
  node.inside.nodes.some((each) => each.name === name || holds(each, name))

// The box in which an edge begins or ends: the innermost one that is open to view.
function boxOf(layout, name) {
  for (const box of layout.boxes) {
    if (box.node.name === name) return box
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

export class GraphView {
  // `chosen(what)` is called with {path} of a node or {edge, scope} when one is chosen.
  constructor(place, plan, chosen) {
    this.place = place
    this.plan = plan
    this.chosen = chosen
    this.open = new Set()
    this.nodes = new Map()
    this.edges = new Map()
    this.all(true)
  }

  all(isOpen) {
    this.open.clear()
    const visit = (scope, path) => {
      for (const node of scope.nodes) {
        if (!node.inside) continue
        const own = [...path, node.name]
        if (isOpen) this.open.add(keyOf(own))
        visit(node.inside, own)
      }
    }
    let count = 0
    const counted = (scope) => scope.nodes.forEach((node) => {
      count += 1
      if (node.inside) counted(node.inside)
    })
    counted(this.plan)
    if (!isOpen || count <= 60) visit(this.plan, [])
    this.draw()
  }

  toggle(path) {
    const key = keyOf(path)
    if (!this.open.delete(key)) this.open.add(key)
    this.draw()
  }

  draw() {
    this.nodes.clear()
    this.edges.clear()
    const layout = arranged(this.plan, [], this.open)
    placed(layout, 0, 34)
    const ends = {
      "@entry": { x: layout.width / 2 - 40, y: 4, width: 80, height: 22 },
      "@exit": { x: layout.width / 2 - 40, y: layout.height + 42, width: 80, height: 22 },
    }
    const width = layout.width + 40, height = layout.height + 70
    // lines lie over open scopes and under nodes
    const scopes = shape("g", {}), boxes = shape("g", {}), lines = shape("g", {})
    this.drawBoxes(layout, scopes, boxes)
    this.drawLines(layout, lines, ends, true)
    for (const [name, label] of [["@entry", "input"], ["@exit", "output"]]) {
      const end = ends[name]
      boxes.append(
        shape("rect", { x: end.x, y: end.y, width: 80, height: 22, rx: 11, class: "box" }),
        words(label, { x: end.x + 40, y: end.y + 15, "text-anchor": "middle", class: "small" }),
      )
    }
    const arrow = shape(
      "marker",
      { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" },
      shape("path", { d: "M0 0 L8 4 L0 8 z", fill: "context-stroke" }),
    )
    const picture = shape(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "graph" },
      shape("defs", {}, arrow), scopes, lines, boxes,
    )
    this.place.replaceChildren(picture)
    if (this.states) this.show(this.states, this.carried)
  }

  drawBoxes(layout, scopes, boxes) {
    for (const box of layout.boxes) {
      const isFoldable = Boolean(box.node.inside)
      const made = shape("g", {
        class: box.inner ? "node inside" : "node", tabindex: 0, role: "button", "data-key": box.key,
      })
      made.append(
        shape("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 8, class: "box" }),
        words(short(box.node.name, Math.floor((box.width - (box.inner ? 90 : 20)) / 7)), { x: box.x + 10, y: box.y + 18 }),
      )
      const told = words("", { x: box.x + 10, y: box.inner ? box.y + 18 : box.y + 36, class: "small" })
      if (box.inner) told.setAttribute("x", box.x + box.width - 12)
      if (box.inner) told.setAttribute("text-anchor", "end")
      made.append(told)
      if (isFoldable && !box.inner) {
        made.append(words("⊞", { x: box.x + box.width - 20, y: box.y + 18, class: "small" }))
      }
      const choose = () => this.chosen({ path: box.path, node: box.node })
      made.addEventListener("click", (event) => {
        event.stopPropagation()
        choose()
      })
      made.addEventListener("dblclick", () => isFoldable && this.toggle(box.path))
      made.addEventListener("keydown", (event) => {
        if (event.target !== made) return
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault()
          choose()
        } else if (event.key === "f" && isFoldable) this.toggle(box.path)
      })
      this.nodes.set(box.key, { made, told, box })
      ;(box.inner ? scopes : boxes).append(made)
      if (box.inner) this.drawBoxes(box.inner, scopes, boxes)
    }
  }

  drawLines(layout, group, ends) {
    layout.scope.edges.forEach((edge, at) => {
      const from = edge.source === "@entry" ? ends && ends["@entry"] : boxOf(layout, edge.source)
      const to = edge.target === "@exit" ? ends && ends["@exit"] : boxOf(layout, edge.target)
      const inside = layout.boxes.some((box) => holds(box.node, edge.source) && holds(box.node, edge.target))
      if (!from || !to || inside || (from === to && edge.source !== edge.target)) return
      const d = line(from, to, at)
      const drawn = shape("path", { d, class: edge.trigger ? "edge" : "edge is-data", "marker-end": "url(#arrow)" })
      const label = `edge ${edge.source} to ${edge.target}${edge.label ? `: ${edge.label}` : ""}`
      const hit = shape("path", { d, class: "hit", tabindex: 0, role: "button", "aria-label": label })
      const title = shape("title", {})
      title.textContent = label
      hit.append(title)
      const choose = () => this.chosen({ edge, scope: layout.path })
      hit.addEventListener("click", choose)
      hit.addEventListener("keydown", (event) => event.key === "Enter" && choose())
      group.append(drawn, hit)
      this.edges.set(keyOf([...layout.path, edge.name]), drawn)
    })
    for (const box of layout.boxes) if (box.inner) this.drawLines(box.inner, group, null)
  }

  choose(path) {
    for (const { made, box } of this.nodes.values()) {
      made.classList.toggle("is-chosen", path !== null && box.key === keyOf(path))
    }
  }

  // `states`: by key of a node {state, told}; `carried`: by key of an edge how often it was live,
  // -1 for one that was dead.
  show(states, carried) {
    const before = this.carried || new Map()
    this.states = states
    this.carried = carried
    for (const [key, { made, told, box }] of this.nodes) {
      const found = states.get(key) || { state: "pending", told: "" }
      made.dataset.state = found.state
      told.textContent = found.told
      made.setAttribute("aria-label", `${box.node.name}: ${found.state} ${found.told}`)
    }
    for (const [key, drawn] of this.edges) {
      const times = carried.get(key) || 0
      drawn.classList.toggle("is-live", times > 0)
      drawn.classList.toggle("is-dead", times < 0)
      drawn.classList.toggle("moving", times > 0 && times !== before.get(key))
    }
  }
}
