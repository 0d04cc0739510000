// What is shown of a node, an edge and a firing of a run.
import { areMessages, block, button, carried, details, legible, make, money, pictured, seconds } from "./dom.js"
import { keyOf } from "./graph.js"
import { inputsOf, partial, replyOf } from "./run.js"
import { may, once, page, tried, turnTo } from "./shell.js"

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

const part = (key, inside, version = "") => [key, () => make("div", {}, inside()), version]

// The details of what is chosen in a run, in parts as `keep` takes them; `view` is its page.
export class Details {
  constructor(view) {
    Object.assign(this, { view, edited: new Set() }) // steps whose forks are being written
  }

  edge({ edge, scope }) {
    let sent = this.view.run.edges.get(keyOf([...scope, edge.name])) || []
    for (const [key, all] of sent.length ? [] : this.view.run.edges) { // it leaves a cycle: it is sent from inside
      const path = JSON.parse(key)
      if (path[path.length - 1] === edge.name && keyOf(path.slice(0, scope.length)) === keyOf(scope)) sent = all
    }
    const isEntry = edge.source === "@entry"
    return [
      part("edge", () => [make("h2", {}, `${edge.source} → ${edge.target}`), edge.label ? make("p", { class: "soft" }, edge.label) : null]),
      ...(isEntry ? [part("input", () => [make("h3", {}, "input"), carried(this.view.run.input)])] : []),
      ...sent.slice(-50).reverse().map(({ step, payload }) => part(step.id, () => [make("h3", {}, `step ${step.number}, ${seconds(step.at)}`), carried(payload)])),
      ...(sent.length > 50 ? [part("earlier", () => make("p", { class: "soft" }, `${sent.length - 50} earlier ones are not shown.`), `${sent.length}`)] : []),
      ...(sent.length || isEntry ? [] : [part("nothing", () => make("p", {}, "It has carried nothing."))]),
    ]
  }

  node({ path, node }) {
    const { run, live, isAtEnd, states } = this.view, own = keyOf(path)
    const found = run.nodes.get(own)
    const config = node.config || {}, used = found ? amounts(found) : ""
    const parts = [part("node", () => [make("h2", {}, path.join(" / ")), make("p", { class: "soft" }, [node.type, node.description, used].filter(Boolean).join(" · "))], used)]
    if (config.instructions) parts.push(part("instructions", () => [make("h3", {}, "instructions"), block(config.instructions)]))
    if (Object.keys(config).length) parts.push(part("settings", () => details("settings", block(config))))
    const atWork = isAtEnd ? [...live.firings].filter(([, firing]) => keyOf(firing.path) === own) : []
    for (const [activation, firing] of atWork) parts.push(part(`live ${activation}`, () => this.live(firing), JSON.stringify([firing.chunks.length, firing.chunks.at(-1), firing.state])))
    const failures = run.failures.filter((each) => keyOf(each.path) === own)
    for (const [at, each] of failures.entries()) {
      parts.push(part(`failed ${at}`, () => [make("h3", {}, "failed ", make("span", { class: "soft" }, each.activation)), ...failureDetail(each), this.inputs(path, Infinity)]))
    }
    const firings = found ? run.firings(found) : [], lost = partial(run, path), first = firings.length - SHOWN_FIRINGS
    if (lost) parts.push(part("lost", () => make("p", { class: "notice" }, `Of the ${lost.rounds} rounds of ${lost.path.join(" / ")} ${lost.kept} are kept: the firings of the others are not here.`), `${lost.rounds} ${lost.kept}`))
    for (const each of firings.filter(({ step }, at) => at >= first || (step && this.edited.has(step.id))).reverse()) {
      parts.push(part(each.step ? each.step.id : each.activation, () => this.firing(path, each), `${each.parts.length}`))
    }
    if (first > 0) parts.push(part("earlier", () => make("p", { class: "soft" }, `${first} earlier ones are not shown: move the slider back.`), `${first}`))
    const { state } = states.get(own) || { state: "pending" }
    if (!firings.length && !failures.length && !atWork.length && SAID[state]) parts.push(part("state", () => make("p", {}, SAID[state]), state))
    return parts
  }

  // What a firing at work has said.
  live({ chunks, state, error, lost }) {
    const { text, fields, thoughts, notes } = replyOf(chunks)
    return [make("h3", {}, state), thoughts ? details("reasoning", block(thoughts)) : null, text ? block(text, "reply") : null, fields ? block(fields, "fields") : null,
      error ? make("p", { class: "is-failed" }, error) : null,
      lost ? make("p", { class: "soft" }, `What it showed first is not kept: ${lost} parts.`) : null,
      notes.slice(-20).map((note) => (note.kind === "part" ? pictured(note.part) : block(note)))]
  }

  // What came in before a firing.
  inputs(path, before) {
    return inputsOf(this.view.run, this.view.plan, path, before).map(({ edge, payload }) => details(`in: ${edge.source === "@entry" ? "input" : edge.source}`, carried(payload)))
  }

  firing(path, { step, parts, activation }) {
    const before = step ? step.number : Infinity
    const inside = [make("h3", {}, step ? `Step ${step.number}, at ${seconds(step.at)} ` : "At work ", make("span", { class: "soft" }, step ? step.activation : activation))]
    inside.push(...this.inputs(path, before))
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
      this.edited.add(step.id)
      const routed = make("input", { type: "checkbox", id: `routed-${step.id}` })
      routed.checked = true
      const go = once(() => tried(async () => {
        const body = { at: step.id }
        if (edited.value !== first) {
          const given = isSaid ? [{ ...output[0], content: edited.value }] : isText ? edited.value : JSON.parse(edited.value)
          Object.assign(body, { output: given, is_routed: routed.checked })
        }
        await turnTo(`run=${(await page.server.post(`/runs/${this.view.runId}/fork`, body)).run_id}`)
      }))
      place.replaceChildren(make("form", { onsubmit: (event) => {
        event.preventDefault()
        go()
      } }, edited, make("label", {}, routed, " the edges of the node decide again which of them carry it"),
        make("div", { class: "bar" }, make("button", { class: "primary", title: "Ctrl+Enter" }, "Start the fork"), button("Back", close))))
      edited.focus()
    }
    const start = button("Fork from here", open, { class: "fork" })
    const close = () => {
      this.edited.delete(step.id)
      place.replaceChildren(start)
      start.focus()
    }
    place.append(start)
    return place
  }
}
