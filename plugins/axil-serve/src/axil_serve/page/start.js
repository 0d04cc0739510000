// The form that starts a run, made from the inputs of its workflow.
import { button, make, parsed } from "./dom.js"
import { FilesGiven, takeDrops } from "./files.js"
import { empty, may, once, page, show, tried, turnTo } from "./shell.js"

// What an input may be: a choice of words, a text, a number, or anything else, written as JSON.
export function kindOf(schema, defs = {}) {
  if (!schema || typeof schema !== "object") return { kind: "any", hasText: true }
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop()
    return name === "variable" ? { kind: "variable" } : kindOf(defs[name] || (schema.$defs || {})[name], defs)
  }
  if (schema.enum) return { kind: "choice", words: schema.enum, hasText: true }
  if ("const" in schema) return { kind: "choice", words: [schema.const], hasText: true }
  if (schema.anyOf || schema.oneOf) {
    // null and ${NAME} are no kinds of their own: either may stand for each of them
    const every = (schema.anyOf || schema.oneOf).filter((each) => each.type !== "null").map((each) => kindOf(each, defs))
    const kinds = every.filter((each) => each.kind !== "variable")
    if (!kinds.length) return { kind: "text", hasText: true }
    if (kinds.length === 1) return { ...kinds[0], hasVariable: every.length > 1 || kinds[0].hasVariable }
    if (kinds.every((each) => each.kind === "choice")) return { kind: "choice", words: kinds.flatMap((each) => each.words), hasText: true }
    return { kind: "any", hasText: kinds.some((each) => each.hasText), inner: kinds.find((each) => each.schema) }
  }
  if (schema.type === "boolean") return { kind: "choice", words: [true, false] }
  if (schema.type === "string") return { kind: "text", hasText: true, format: schema.format || "" }
  if (schema.type === "integer" || schema.type === "number") return { kind: "number" }
  if (schema.type === "array" && schema.items && kindOf(schema.items, defs).kind === "text") return { kind: "list", schema }
  return { kind: "any", schema, hasText: !schema.type }
}

// A list of texts, one a line; as JSON, where lines would say something else.
const areLines = (list) => Array.isArray(list) && list.every((each) => typeof each === "string" && each && each === each.trim() && !/\n|^\[/.test(each))
function listOf(text) {
  const read = text.trim().startsWith("[") ? parsed(text) : null
  return Array.isArray(read) ? read : text.split("\n").map((each) => each.trim()).filter(Boolean)
}

const numberOf = (text) => (Number.isFinite(Number(text)) ? Number(text) : text)

// Inputs of a form for the properties of a schema. `value` is what is filled in; wrong ones are said.
export class InputForm {
  // `isWhole`: nothing else is filled in, defaults neither.
  constructor(schema, given = {}, isWhole = false) {
    this.fields = new Map()
    this.isWhole = isWhole
    this.paths = make("datalist", { id: "paths" })
    this.place = make("div", { class: "fields" }, this.paths, Object.entries(schema.properties).map(([name, each]) => this.field(name, each, schema, given[name])))
  }

  field(name, schema, whole, given) {
    const { kind, words, hasText, format } = kindOf(schema, whole.$defs || schema.$defs || {})
    const isRequired = (whole.required || []).includes(name), id = `in-${name}`, first = given === undefined && !this.isWhole ? schema.default : given
    let input
    if (kind === "choice") {
      input = make("select", { id }, isRequired ? null : make("option", { value: "" }, "not set"),
        words.map((word) => make("option", { value: JSON.stringify(word), selected: JSON.stringify(word) === JSON.stringify(first) }, String(word))))
    } else if (kind === "number") input = make("input", { id, type: "text", inputmode: "decimal", value: first ?? "" })
    else if (/path/.test(format)) input = make("input", { id, type: "text", list: "paths", value: first ?? "", placeholder: "attachments/…" })
    else {
      input = make("textarea", { id, rows: 1, class: kind === "any" && !hasText ? "is-code" : "" })
      const isPlain = kind === "list" ? areLines(first) && (first.length > 0 || given === undefined) : typeof first === "string" && (kind !== "any" || (hasText && parsed(first) === first))
      input.value = first === undefined || first === null ? "" : !isPlain ? JSON.stringify(first, null, 2) : kind === "list" ? first.join("\n") : first
      const grow = () => (input.rows = Math.min(16, Math.max(input.value.split("\n").length, Math.ceil(input.value.length / 90), 1)))
      input.addEventListener("input", grow)
      grow()
    }
    const says = make("small", { class: "finding is-error", role: "alert", id: `${id}-says` })
    input.setAttribute("aria-describedby", says.id)
    if (isRequired) input.required = true
    this.fields.set(name, { input, kind, hasText, isRequired, says, isText: typeof first === "string" || first === undefined })
    const word = { any: hasText ? "" : "JSON", number: "a number", list: "one a line", choice: "", text: "" }[kind]
    return make("div", { class: "field" }, make("label", { for: id }, name, isRequired ? "" : make("span", { class: "soft" }, " (optional)")), input,
      make("small", { class: "soft" }, [schema.description, word].filter(Boolean).join(" · ")), says)
  }

  // What is filled in, also where it is wrong.
  get draft() {
    const found = {}
    for (const [name, { input, kind, isRequired }] of this.fields) {
      const text = input.value
      if (text !== "") found[name] = kind === "choice" ? JSON.parse(text) : kind === "number" ? numberOf(text) : kind === "list" ? listOf(text) : kind === "text" ? text : parsed(text)
      else if (isRequired && kind === "text") found[name] = ""
    }
    return found
  }

  // The input that is filled in; null: something is wrong, which is said at its field.
  get value() {
    const found = {}
    let isRight = true
    for (const [name, { input, kind, hasText, isRequired, says }] of this.fields) {
      says.textContent = ""
      const text = input.value
      const wrong = (word) => {
        says.textContent = word
        if (isRight) input.focus()
        isRight = false
      }
      if (text === "") {
        if (isRequired && !(kind === "text" || hasText)) wrong("It is needed.")
        else if (isRequired) found[name] = ""
      } else if (kind === "choice") found[name] = JSON.parse(text)
      else if (kind === "number") Number.isFinite(Number(text)) ? (found[name] = Number(text)) : wrong("Expected a number.")
      else if (kind === "text") found[name] = text
      else if (kind === "list") found[name] = listOf(text)
      else {
        const read = parsed(text)
        if (typeof read === "string" && !hasText && !text.startsWith('"')) wrong("Expected JSON.")
        else found[name] = read
      }
    }
    return isRight ? found : null
  }

  // Paths of files that have been given: offered at every text, and put where the only path is missing.
  offer(paths) {
    this.paths.replaceChildren(...paths.map((path) => make("option", { value: path })))
    const open = [...this.fields.values()].filter(({ input }) => input.getAttribute("list") === "paths" && !input.value)
    if (paths.length && open.length === 1) open[0].input.value = paths[paths.length - 1]
  }
}

// The input of a workflow: fields, or one text.
const isText = (workflow) => workflow.payload === "messages"

export async function start(name, isCurrent) {
  const { workflows, broken } = await page.server.get("/workflows")
  if (!isCurrent()) return
  const again = page.again, given = page.given // a run that is to be run again with changes; files that were dropped elsewhere
  Object.assign(page, { again: null, given: [] })
  if (!may("run")) return show(make("h1", {}, "Start a run"), make("p", {}, "Your token may look at runs, and not start any."))
  if (!workflows.length) return show(make("h1", {}, "Start a run"), faultsOf(broken), empty("No workflow is served here", make("p", {}, "Start the server with one: ", make("code", {}, "axil serve flow.yaml")),
    page.me.files ? make("p", {}, "Or make one in ", make("a", { href: "#edit=" }, "the editor"), ", and run it there.") : null))
  const wanted = (again && again.workflow) || name || sessionStorage.getItem("axil-last") || ""
  const which = make("select", { id: "which", onchange: () => draw() }, workflows.map((each) => make("option", { value: each.name, selected: each.name === wanted }, each.name)))
  const about = make("p", { class: "soft" }), place = make("div")
  const asJson = make("input", { type: "checkbox", id: "as-json", onchange: () => turn() })
  const files = new FilesGiven(() => form && form.offer(files.paths))
  const says = make("small", { class: "finding is-error", role: "alert", id: "input-says" })
  const text = make("textarea", { id: "input", rows: 4, "aria-describedby": says.id })
  let form = null
  const chosen = () => workflows.find((each) => each.name === which.value)
  // Between the form and JSON: what is filled in stays.
  const turn = () => {
    if (asJson.checked) {
      if (form) text.value = JSON.stringify(form.draft, null, 2)
      return draw()
    }
    const given = text.value.trim() ? parsed(text.value) : {}, isFields = given && typeof given === "object" && !Array.isArray(given)
    const next = isFields ? new InputForm(chosen().inputs, given, true) : null
    const lost = next ? Object.keys(given).filter((name) => JSON.stringify(next.draft[name]) !== JSON.stringify(given[name])) : ["what is not a JSON object"]
    if (!lost.length) return draw(next)
    asJson.checked = true
    says.textContent = `The form cannot show ${lost.join(", ")}.`
  }
  const draw = (filled = null) => {
    const workflow = chosen(), own = again && again.workflow === workflow.name ? again.input : null
    about.textContent = workflow.description
    const isFields = own === null || (typeof own === "object" && !Array.isArray(own))
    const hasForm = !isText(workflow) && Object.keys(workflow.inputs.properties).length && !asJson.checked && (filled || isFields)
    form = !hasForm ? null : filled || new InputForm(workflow.inputs, own || {})
    says.textContent = ""
    if (own !== null && !text.value) text.value = typeof own === "string" ? own : JSON.stringify(own, null, 2)
    text.rows = Math.min(16, Math.max(4, text.value.split("\n").length + 1))
    asJson.parentElement.hidden = isText(workflow) || !Object.keys(workflow.inputs.properties).length
    place.replaceChildren(form ? form.place : make("div", { class: "field" }, make("label", { for: "input" }, isText(workflow) ? "Input: a text" : "Input: a text, or JSON"), text, says))
    if (form) form.offer(files.paths)
  }
  const send = once(() => tried(async () => {
    await files.arrived()
    const body = { workflow: which.value }
    const isSaid = isText(chosen()) // also an empty text is one
    const input = form ? form.value : text.value.trim() ? parsed(text.value) : isSaid ? "" : undefined
    if (input === null) return
    if (input !== undefined) body.input = input
    if (files.ids.length) body.files = files.ids
    const { run_id } = await page.server.post("/runs", body)
    sessionStorage.setItem("axil-last", which.value)
    await turnTo(`run=${run_id}`)
  }))
  show(make("h1", {}, again ? "Run again, with changes" : "Start a run"),
    make("form", { class: "start", onsubmit: (event) => {
      event.preventDefault()
      send()
    } }, make("div", { class: "field" }, make("label", { for: "which" }, "Workflow"), which), about,
      files.place, place, make("label", { class: "small" }, asJson, " write the input as JSON"), make("div", { class: "bar" }, make("button", { class: "primary" }, "Start"), make("span", { class: "soft" }, "or Ctrl+Enter"))),
    faultsOf(broken))
  draw()
  takeDrops(page.app.querySelector("main"), (dropped) => files.add(dropped))
  if (given.length) await files.add(given)
  const first = page.app.querySelector(".fields :is(input, textarea, select), #input")
  if (first && !page.app.querySelector("main").contains(document.activeElement)) first.focus()
}

// The workflows of a folder that are not served, and why.
export const faultsOf = (broken) => (!broken.length ? null : make("details", { class: "broken" },
  make("summary", {}, `Not served: ${broken.map((each) => each.name).join(", ")}`),
  broken.flatMap(({ problems }) => problems.map((each) => make("p", { class: "lines" }, each)))))
