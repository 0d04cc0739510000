// The forms of the editor: of a node, of an edge, and of the condition of an edge.
import { afterPress, button, details, make, parsed, renew } from "./dom.js"
import { keyOf } from "./graph.js"
import { scopeOf } from "./run.js"
import { kindOf } from "./start.js"

const LONG_TEXT = 60
const MAIN = ["instructions", "code", "content", "description", "model", "routes", "any"] // shown though they are not set
const TEXTS = ["instructions", "code", "template", "prompt_template", "content", "description"]
const DRAFTS = ["f-edge", "f-after"] // choices for a button beside them

// The settings of a component among those of its kind (nodes, conditions): their schemas by name, which are required, and what it is.
export function settingsOf(schema, kind, type) {
  const found = (schema.$defs[kind].allOf || []).find((each) => each.if.properties.type.const === type)
  const own = found && found.then.properties.config
  const config = own && (own.properties ? own : (own.anyOf || []).find((each) => each.properties))
  return { properties: (config && config.properties) || {}, required: (config && config.required) || [], description: ((config && config.description) || "").replaceAll("``", "") }
}

// What a required setting begins with.
export function emptyOf(schema, defs) {
  const { kind, words, hasText } = kindOf(schema, defs)
  if (kind === "choice") return words[0]
  if (kind === "number") return 1
  if (kind === "list") return []
  return kind === "text" || hasText ? "" : schema.type === "array" ? [] : {}
}

// A place as findings name it: nodes[2].config.model.
export function wordsOf(path) {
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

const finding = (each) => make("p", { class: `finding is-${each.severity}` }, `${each.message} ${each.hint}`)

// The form of what is chosen in an editor, `view`.
export class Forms {
  constructor(view) {
    this.view = view
    this.place = make("aside", { "aria-label": "form", class: "form" })
  }

  get defs() {
    return this.view.schema.$defs
  }

  draw() {
    afterPress(() => this.drawNow())
  }

  drawNow() {
    const { view, place } = this, { chosen } = view
    if (!chosen) {
      this.key = ""
      return place.replaceChildren(make("p", { class: "soft" }, view.plan && view.plan.nodes.length ? "Choose a node or an edge to change it." : ""))
    }
    const { path, edge } = chosen
    const scope = path ? scopeOf(view.plan, path) : view.scopeAt(chosen.scope)
    const now = scope && (path ? scope.nodes.find((each) => each.name === path[path.length - 1])
      : scope.edges.find((each) => keyOf(each.path) === keyOf(edge.path)))
    if (!now) { // it is not in the text any more
      view.chosen = null
      return this.drawNow()
    }
    if (path) chosen.node = now
    else chosen.edge = now
    const key = JSON.stringify([view.fixed, path, now.given, now.path, view.of(now.path).map((each) => each.message), path && this.ends(path, scope), path && reaches(scope, now.name)])
    if (key === this.key) return
    this.key = key
    const drafted = keyOf(path || []) === this.drawn ? DRAFTS.map((id) => [id, document.getElementById(id)?.value]) : []
    this.drawn = keyOf(path || [])
    renew(place, ...(path ? this.node(path, now, scope) : this.edge(now, scope)).filter(Boolean))
    for (const [id, value] of drafted) { // what was chosen, and is not in the text yet
      const select = document.getElementById(id)
      if (select && [...select.options].some((each) => each.value === value)) select.value = value
    }
    if (view.fixed) for (const each of place.querySelectorAll("input, textarea, select, button")) each.disabled = true
  }

  node(path, node, scope) {
    const { view } = this
    const { properties, required, description } = settingsOf(view.schema, "nodes", node.type)
    const config = typeof node.given.config === "object" && node.given.config ? node.given.config : {}
    const nodeSchema = this.defs.Node.properties
    const own = Object.keys(nodeSchema).filter((name) => !["id", "type", "config", "use"].includes(name))
    const field = (name) => this.field(name, properties[name], config[name], [...node.path, "config", name], required.includes(name))
    const first = Object.keys(properties).filter((name) => required.includes(name) || name in config || MAIN.includes(name))
    const rest = Object.keys(properties).filter((name) => !first.includes(name))
    const ofNode = (name) => this.field(name, nodeSchema[name], node.given[name], [...node.path, name])
    const set = own.filter((name) => name in node.given), unset = own.filter((name) => !(name in node.given))
    const limit = (scope.limits[node.name] || {}).rounds
    return [
      make("h2", {}, path.join(" / ")), description ? make("p", { class: "soft" }, description) : null,
      ...view.of(node.path).map(finding),
      this.labelled("id", make("input", { type: "text", id: "f-id", value: node.name, onchange: (event) => view.rename(path, scope, event.target.value) })),
      this.labelled("type", make("select", { id: "f-type", onchange: (event) => view.change({ do: "set", path: [...node.path, "type"], value: event.target.value }) },
        [...new Set([node.type, ...this.defs.nodes.properties.type.examples])].map((type) => make("option", { value: type, selected: type === node.type }, type)))),
      // an inner graph is edited in the drawing
      ...first.filter((name) => !(node.inside && holdsNodes(config[name]))).map(field), ...set.map(ofNode),
      reaches(scope, node.name) ? this.field("rounds of its loop", { type: "integer", description: "How often the loop that is entered here may turn." }, limit,
        [...scope.path, "cycle_limits", node.name, "rounds"]) : null,
      this.ways(path, node, scope),
      rest.length ? details("more settings", rest.map(field)) : null,
      details("of every node", unset.map(ofNode)),
      make("div", { class: "bar" }, button("Mark for a group", () => view.mark(keyOf(path))),
        node.inside ? button("Ungroup", () => view.ungroup(path, scope)) : null, button("Remove the node", () => view.remove())),
    ]
  }

  // Whether a graph begins with a node, and whether it ends there.
  ends(path, scope) {
    const name = path[path.length - 1]
    return [scope.edges.some((each) => each.source === "@entry" && each.target === name), scope.edges.some((each) => each.target === "@exit" && each.source === name)]
  }

  // Where a node gets its input from, and where its output goes.
  ways(path, node, scope) {
    const { view } = this, around = path.slice(0, -1), [begins, isEnd] = this.ends(path, scope)
    const box = (id, text, isOn, from, to) => {
      const input = make("input", { type: "checkbox", id, onchange: () => (input.checked ? view.connect(from, to, around) : view.removeEdge(scope.edges.find((each) => each.source === from && each.target === to))) })
      input.checked = isOn
      return make("label", {}, input, ` ${text}`)
    }
    const target = make("select", { id: "f-edge" }, scope.nodes.map((each) => make("option", {}, each.name)))
    const type = make("select", { id: "f-after" }, this.defs.nodes.properties.type.examples.map((each) => make("option", { selected: each === "agent" }, each)))
    return make("fieldset", {}, make("legend", {}, "ways"),
      make("div", { class: "bar" }, box("f-start", "gets the input of the graph", begins, "@entry", node.name), box("f-end", "its output is the result", isEnd, node.name, "@exit")),
      make("div", { class: "bar" }, make("label", { for: "f-edge" }, "edge to"), target, button("Add the edge", () => view.connect(node.name, target.value, around))),
      make("div", { class: "bar" }, make("label", { for: "f-after" }, "new node after it"), type, button("Add the node", () => view.add(type.value, around, scope, node.name))))
  }

  edge(edge, scope) {
    const { view } = this, title = make("h2", {}, `${edge.source} → ${edge.target}`)
    const remove = make("div", { class: "bar" }, button("Remove the edge", () => view.remove()))
    if (!("from" in edge.given)) return [title, make("p", { class: "soft" }, "It is written as start or end of the graph."), remove]
    const { properties } = this.defs.Edge
    const choice = (name) => this.labelled(name, make("select", { id: `f-${name}`, onchange: (event) => view.change({ do: "set", path: [...edge.path, name], value: event.target.value }) },
      [...new Set([edge.given[name], ...scope.nodes.map((node) => node.name)])].map((each) => make("option", { selected: each === edge.given[name] }, each))))
    const names = Object.keys(properties).filter((name) => !["from", "to", "condition"].includes(name))
    const field = (name) => this.field(name, properties[name], edge.given[name], [...edge.path, name])
    const isBack = reaches(scope, edge.target) && reaches(scope, edge.source)
    return [title, ...view.of(edge.path).map(finding),
      choice("from"), choice("to"), ...this.condition(edge),
      isBack ? this.field("rounds of its loop", { type: "integer", description: `How often the loop that is entered at ${edge.target} may turn.` }, (scope.limits[edge.target] || {}).rounds,
        [...scope.path, "cycle_limits", edge.target, "rounds"]) : null,
      ...names.filter((name) => name in edge.given).map(field),
      details("more settings", names.filter((name) => !(name in edge.given)).map(field)), remove]
  }

  // When an edge is taken: a kind of condition, and its settings.
  condition(edge) {
    const { view } = this, given = edge.given.condition, path = [...edge.path, "condition"]
    const type = given && typeof given === "object" ? given.type || "" : typeof given === "string" ? given : given === undefined || given === null ? "" : String(given)
    const known = this.defs.conditions.properties.type.examples, usual = ["keyword", "regex", "expression"].filter((each) => known.includes(each))
    const { properties, required } = settingsOf(view.schema, "conditions", type)
    const config = given && typeof given === "object" && given.config && typeof given.config === "object" ? given.config : {}
    const chosen = (name) => {
      if (!name) return view.change({ do: "remove", path })
      const settings = settingsOf(view.schema, "conditions", name), names = Object.keys(settings.properties)
      if (!names.length) return view.change({ do: "set", path, value: name })
      const value = Object.fromEntries(settings.required.map((each) => [each, emptyOf(settings.properties[each], this.defs)]))
      return view.change({ do: "set", path, value: { type: name, config: value } })
    }
    const select = make("select", { id: "f-condition", onchange: (event) => chosen(event.target.value) }, make("option", { value: "" }, "always"),
      [...new Set([...usual, ...known, ...(type ? [type] : [])])].map((each) => make("option", { value: each, selected: each === type }, each)))
    // a condition that is a name alone has no place for a setting yet
    const isNamed = typeof given === "string"
    const field = (name) => this.field(name, properties[name], config[name], [...path, "config", name], required.includes(name),
      isNamed ? (value) => view.change({ do: "set", path, value: { type, config: { [name]: value } } }) : null)
    return [this.labelled("taken when", select, settingsOf(view.schema, "conditions", type).description), ...Object.keys(properties).map(field)]
  }

  labelled(name, input, description = "", findings = []) {
    return make("div", { class: "field" }, make("label", { for: input.id }, name), input,
      description ? make("small", { class: "soft" }, description) : null,
      findings.map((each) => make("small", { class: `finding is-${each.severity}` }, each.message)))
  }

  // An input for a setting; an empty one removes the setting from the file. `set`: how a value is written, if not at its path.
  field(name, schema = {}, value, path, isRequired = false, set = null) {
    const { view } = this, { kind, words, hasText } = kindOf(schema, this.defs)
    const id = `f-${path.slice(2).join("-")}`
    const put = (given) => {
      if (given === undefined) return value === undefined ? null : view.change({ do: "remove", path })
      if (JSON.stringify(given) === JSON.stringify(value)) return null
      return set ? set(given) : view.change({ do: "set", path, value: given })
    }
    const isText = typeof value === "string" && kind !== "choice"
    const isList = kind === "list" && (value === undefined || value === null || (Array.isArray(value) && value.every((each) => typeof each === "string")))
    const written = value === undefined || value === null ? "" : isList ? value.join("\n") : isText ? value : JSON.stringify(value)
    const read = (text) => {
      if (text === "" && !isRequired) return undefined
      if (isList) return /\$\{/.test(text) && !text.includes("\n") ? text : text.split("\n").map((each) => each.trim()).filter(Boolean)
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
    } else if (isList || written.includes("\n") || written.length > LONG_TEXT || TEXTS.includes(name)) {
      input = make("textarea", { id, rows: Math.min(12, Math.max(isList ? 2 : 3, Math.ceil(written.length / 50), written.split("\n").length)), onchange })
      input.value = written
    } else {
      const hint = schema.default === undefined || schema.default === null ? "" : JSON.stringify(schema.default)
      input = make("input", { type: "text", id, value: written, placeholder: hint, onchange, ...(kind === "number" ? { inputmode: "decimal" } : {}) })
    }
    const own = view.problems.filter((each) => each.path === wordsOf(path))
    return this.labelled(isRequired ? `${name} *` : name, input, [schema.description, isList ? "one a line" : ""].filter(Boolean).join(" · "), own)
  }
}
