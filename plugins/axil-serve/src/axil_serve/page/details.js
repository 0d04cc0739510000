// What is shown of a node, an edge and a firing of a run.
import { areMessages, block, button, carried, details, legible, make, money, pictured, seconds } from "./dom.js"
import { keyOf } from "./graph.js"
import { inputsOf, partial, replyOf, scopeOf } from "./run.js"
import { may, once, page, tried } from "./shell.js"

const SHOWN_FIRINGS = 30
const SAID = { pending: "It has not run.", skipped: "It was left out: nothing was sent to it.", unknown: "It may have run: its firings are not kept.",
  cancelled: "It was stopped before it ended.", limited: "The limit was reached before it ended.", running: "It is at work.", waiting: "It waits." }

// An error with the line of the user's own code that it came through.
export const failureDetail = ({ error, place }) => [make("p", { class: "is-failed lines" }, error), place ? make("div", { class: "soft" }, "in your code") : null, place ? block(place) : null].filter(Boolean)

// The output of a step: what its edges carried; the fields of several of them together.
function outputOf(step) {
  const payloads = Object.values(step.output || {})
  const areFields = payloads.every((each) => each && typeof each === "object" && !Array.isArray(each))
  return payloads.length > 1 && areFields ? Object.assign({}, ...payloads) : payloads[0] ?? null
}

export const amounts = (node, part = null) => [
  part && part !== node ? `${node.times}× kept` : node.times > 1 ? `${node.times}×` : "",
  node.rounds ? `${node.rounds} rounds` : "",
  node.tokens ? `${node.tokens} tok` : "",
  money(node.cost),
].filter(Boolean).join(" · ")

// The details of what is chosen in a run; `view` is its page.
export class Details {
  constructor(view) {
    this.view = view
  }

  edge({ edge, scope }) {
    let sent = this.view.run.edges.get(keyOf([...scope, edge.name])) || []
    for (const [key, all] of sent.length ? [] : this.view.run.edges) { // it leaves a cycle: it is sent from inside
      const path = JSON.parse(key)
      if (path[path.length - 1] === edge.name && keyOf(path.slice(0, scope.length)) === keyOf(scope)) sent = all
    }
    const isEntry = edge.source === "@entry"
    return [
      make("h2", {}, `${edge.source} → ${edge.target}`),
      edge.label ? make("p", { class: "soft" }, edge.label) : null,
      ...(isEntry ? [make("h3", {}, "input"), carried(this.view.run.input)] : []),
      ...sent.slice(-50).reverse().flatMap(({ step, payload }) => [make("h3", {}, `step ${step.number}, ${seconds(step.at)}`), carried(payload)]),
      sent.length > 50 ? make("p", { class: "soft" }, `${sent.length - 50} earlier ones are not shown.`) : null,
      sent.length || isEntry ? null : make("p", {}, "It has carried nothing."),
    ]
  }

  node({ path, node }) {
    const found = this.view.run.nodes.get(keyOf(path))
    const scope = this.view.plan ? scopeOf(this.view.plan, path) : null
    const config = node.config || {}
    const inside = [make("h2", {}, path.join(" / ")),
      make("p", { class: "soft" }, [node.type, node.description, found ? amounts(found) : ""].filter(Boolean).join(" · "))]
    if (config.instructions) inside.push(make("h3", {}, "instructions"), block(config.instructions))
    if (Object.keys(config).length) inside.push(details("settings", block(config)))
    let live = 0
    for (const firing of this.view.isAtEnd ? this.view.live.firings.values() : []) {
      if (keyOf(firing.path) !== keyOf(path)) continue
      live += 1
      const { text, fields, thoughts, notes } = replyOf(firing.chunks)
      inside.push(make("h3", {}, firing.state), thoughts ? details("reasoning", block(thoughts)) : null, text ? block(text) : null, fields ? block(fields) : null,
        firing.error ? make("p", { class: "is-failed" }, firing.error) : null)
      if (firing.lost) inside.push(make("p", { class: "soft" }, `What it showed first is not kept: ${firing.lost} parts.`))
      for (const note of notes.slice(-20)) inside.push(note.kind === "part" ? pictured(note.part) : block(note))
    }
    const failures = this.view.run.failures.filter((each) => keyOf(each.path) === keyOf(path))
    for (const each of failures) {
      inside.push(make("h3", {}, "failed ", make("span", { class: "soft" }, each.activation)), ...failureDetail(each))
      for (const { edge, payload } of inputsOf(this.view.run, path, scope, Infinity)) inside.push(details(`in: ${edge.source === "@entry" ? "input" : edge.source}`, carried(payload)))
    }
    const firings = found ? this.view.run.firings(found) : []
    const part = partial(this.view.run, path)
    if (part) inside.push(make("p", { class: "notice" }, `Of the ${part.rounds} rounds of ${part.path.join(" / ")} ${part.kept} are kept: the firings of the others are not here.`))
    for (const firing of firings.slice(-SHOWN_FIRINGS).reverse()) inside.push(...this.firing(path, scope, firing))
    if (firings.length > SHOWN_FIRINGS) {
      inside.push(make("p", { class: "soft" }, `${firings.length - SHOWN_FIRINGS} earlier ones are not shown: move the slider back.`))
    }
    const state = (this.view.states.get(keyOf(path)) || { state: "pending" }).state
    if (!firings.length && !failures.length && !live && SAID[state]) inside.push(make("p", {}, SAID[state]))
    return inside
  }

  firing(path, scope, { step, parts, activation }) {
    const before = step ? step.number : Infinity
    const inside = [make("h3", {}, step ? `Step ${step.number}, at ${seconds(step.at)} ` : "At work ", make("span", { class: "soft" }, step ? step.activation : activation))]
    for (const { edge, payload } of inputsOf(this.view.run, path, scope, before)) inside.push(details(`in: ${edge.source === "@entry" ? "input" : edge.source}`, carried(payload)))
    const prompted = new Map(parts.filter((part) => part.kind === "prompt").map((part) => [part.name, part]))
    for (const part of parts) {
      if (part.kind === "prompt" && parts.some((each) => each.kind === "step" && each.name === part.name)) continue
      if (prompted.has(part.name)) inside.push(this.prompt(prompted.get(part.name)))
      inside.push(...this.part(part))
    }
    if (!step) return inside
    for (const [name, payload] of Object.entries(step.output || {})) inside.push(make("div", { class: "soft" }, name), carried(payload))
    if (Object.keys(step.wrote || {}).length) inside.push(make("details", { open: true }, make("summary", {}, "wrote to the state"), block(step.wrote)))
    if (may("run")) inside.push(this.forkButton(step))
    return inside
  }

  // What a model was asked; of a message whose text was not kept its length and digest.
  prompt(prompt) {
    const messages = this.view.run.messages(prompt).flatMap((each) => [make("div", { class: "soft" }, each.role || ""),
      each.content !== undefined || each.tool_calls ? block(each.content || each.tool_calls)
        : make("p", { class: "soft" }, `${each.characters} characters, not kept (digest ${each.digest})`)])
    const request = prompt.request && Object.keys(prompt.request).length ? details("tools and settings", block(prompt.request)) : null
    return details(`prompt of ${prompt.name}: ${prompt.messages.length} messages`, messages, request)
  }

  part(part) {
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
      const go = once(() => tried(async () => {
        const body = { at: step.id }
        if (edited.value !== first) {
          const given = isSaid ? [{ ...output[0], content: edited.value }] : isText ? edited.value : JSON.parse(edited.value)
          Object.assign(body, { output: given, is_routed: routed.checked })
        }
        location.hash = `run=${(await page.server.post(`/runs/${this.view.runId}/fork`, body)).run_id}`
      }))
      place.replaceChildren(make("form", { onsubmit: (event) => {
        event.preventDefault()
        go()
      } }, edited, make("label", {}, routed, " the edges of the node decide again which of them carry it"),
        make("div", { class: "bar" }, make("button", { class: "primary", title: "Ctrl+Enter" }, "Start the fork"), button("Back", () => place.replaceChildren(start)))))
      edited.focus()
    }
    const start = button("Fork from here", open, { class: "fork" })
    place.append(start)
    return place
  }
}
