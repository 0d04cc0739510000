// The page: a list of runs, a run, runs side by side, and the editor.
import { compare } from "./compare.js"
import { ago, button, LongList, make, money, parsed, seconds } from "./dom.js"
import { lost, onKeys, page, problem, questionCard, RunPage, show } from "./look.js"
import { Exported, Server } from "./server.js"

page.app = document.getElementById("app")
page.status = make("div", { class: "quiet", role: "status", "aria-live": "polite" })
const EVERY = 2000 // milliseconds between two looks at the runs
let leave = () => {}, turns = 0

function askForToken() {
  const field = make("input", { type: "password", id: "token", autocomplete: "off", size: 50 })
  const form = make("form", { onsubmit: (event) => {
    event.preventDefault()
    sessionStorage.setItem("token", field.value.trim())
    begin()
  } }, make("label", { for: "token" }, "Token "), field, " ", make("button", {}, "Open"))
  show(make("h1", {}, "axil"), make("p", {}, "The server printed a token when it started."), form)
  field.focus()
}

// ----------------------------------------------------------------------------- list of runs

async function listRuns(isCurrent) {
  const search = make("input", { type: "search", id: "search", placeholder: "search" })
  const count = make("span", { class: "soft", role: "status" })
  const marked = new Set()
  let runs = [], found = [], next = null
  const inside = make("div")
  const side = button("Compare the marked", () => (location.hash = `compare=${[...marked].map(encodeURIComponent).join(",")}`), { disabled: true })
  const list = new LongList("runs", (at) => {
    const run = found[at]
    const mark = make("input", { type: "checkbox", "aria-label": `mark ${run.run_id}`, onclick: (event) => event.stopPropagation(), onchange: () => {
      if (!marked.delete(run.run_id)) marked.add(run.run_id)
      side.disabled = marked.size < 2
    } })
    mark.checked = marked.has(run.run_id)
    return [make("span", {}, mark), make("span", {}, make("a", { href: `#run=${encodeURIComponent(run.run_id)}` }, run.run_id)),
      make("span", { class: `status is-${run.status}` }, run.status), make("span", { title: ago(run.touched) }, since(run.touched)), make("span", {}, run.workflow),
      make("span", { title: run.input }, run.input), make("span", { class: "number" }, seconds(run.status === "running" ? Math.max(run.seconds, Date.now() / 1000 - run.begun) : run.seconds)), make("span", { class: "number" }, money(run.cost) || run.tokens || ""),
      make("span", { class: "number" }, run.steps), make("span", {}, [run.session, run.forked_from ? `fork of ${run.forked_from}` : ""].filter(Boolean).join(" "))]
  }, (at) => (location.hash = `run=${encodeURIComponent(found[at].run_id)}`), { height: 34, isPlain: true })
  list.place.classList.add("runs")
  const draw = () => {
    const wanted = search.value.toLowerCase()
    found = runs.filter((run) => JSON.stringify(run).toLowerCase().includes(wanted))
    count.textContent = `${found.length} of ${runs.length}`
    list.show(found.length)
  }
  const status = make("select", { id: "status", onchange: () => again() }, make("option", { value: "" }, "all"),
    ["queued", "running", "paused", "done", "failed", "limited", "cancelled"].map((each) => make("option", {}, each)))
  const workflow = make("select", { id: "of", onchange: () => again() }, make("option", { value: "" }, "all"))
  const wanted = () => `limit=200&status=${status.value}&workflow=${encodeURIComponent(workflow.value)}`
  const again = () => {
    Object.assign(list.place, { scrollTop: 0 })
    runs = []
    return load()
  }
  const waiting = make("a", { href: "#inbox", hidden: true })
  const load = async () => {
    try {
      // the first page again; older ones stay as they were
      const asked = wanted(), [fresh, { questions }] = await Promise.all([page.server.get(`/runs?${asked}`), page.server.get("/questions")])
      lost(false)
      if (asked !== wanted()) return // another filter was chosen meanwhile
      waiting.hidden = !questions.length
      waiting.textContent = questions.length === 1 ? "1 question waits" : `${questions.length} questions wait`
      const known = new Set(fresh.runs.map((run) => run.run_id))
      if (!runs.length || !fresh.next) next = fresh.next
      const last = fresh.runs.at(-1)
      runs = [...fresh.runs, ...(fresh.next ? runs.filter((run) => !known.has(run.run_id) && run.touched <= last.touched) : [])]
      more.hidden = !next
      draw()
    } catch (error) {
      if (error instanceof TypeError) lost(true) // the network failed
      else problem(error)
    }
  }
  const more = button("More runs", async () => {
    try {
      const older = await page.server.get(`/runs?${wanted()}&after=${encodeURIComponent(next)}`)
      const known = new Set(runs.map((run) => run.run_id))
      runs.push(...older.runs.filter((run) => !known.has(run.run_id)))
      next = older.next
      more.hidden = !next
      draw()
    } catch (error) {
      problem(error)
    }
  }, { hidden: true })
  search.addEventListener("input", draw)
  // what runs said is searched by the server
  const within = async () => {
    if (!search.value.trim()) return inside.replaceChildren()
    try {
      const { found: places, complete } = await page.server.get(`/search?q=${encodeURIComponent(search.value.trim())}`)
      inside.replaceChildren(make("h2", {}, `In what runs said: ${places.length}${complete ? "" : " or more"} runs`),
        make("ul", {}, places.map((each) => make("li", {}, make("a", { href: `#run=${encodeURIComponent(each.run_id)}&at=${each.number}` },
          `${each.workflow} ${each.run_id}`), " ", make("span", { class: `status is-${each.status}` }, each.status), " ",
          make("span", { class: "soft" }, `${each.activation || each.kind}, step ${each.number}${each.steps > 1 ? ` and ${each.steps - 1} more` : ""}: `), withMark(each.text, search.value.trim())))))
    } catch (error) {
      problem(error)
    }
  }
  search.addEventListener("change", within)
  const { workflows, broken } = await page.server.get("/workflows")
  workflow.append(...workflows.map((each) => make("option", {}, each.name)))
  const start = startForm(workflows, broken)
  if (!isCurrent()) return
  show(
    make("header", {}, make("h1", {}, "Runs"), count, waiting,
      page.me.files ? make("a", { href: "#edit=" }, "edit workflow files") : null),
    start,
    make("div", { class: "bar" }, make("label", { for: "search" }, "Search "), search, button("Search in what runs said", within),
      make("label", { for: "status" }, "Status "), status, make("label", { for: "of" }, "of "), workflow, side),
    make("div", { class: "heads", "aria-hidden": "true" }, ["", "run", "status", "changed", "workflow", "input", "time", "cost", "steps", "session"].map((each) => make("span", {}, each))),
    list.place, more, inside,
  )
  const timer = setInterval(() => document.hidden || load(), EVERY)
  leave = () => clearInterval(timer)
  await load()
}

// A text in which what was looked for is marked.
function withMark(text, wanted) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase())
  return at < 0 ? text : [text.slice(0, at), make("mark", {}, text.slice(at, at + wanted.length)), text.slice(at + wanted.length)]
}

function startForm(workflows, broken) {
  if (!page.me.rights.includes("run")) return null
  const faults = !broken.length ? null : make("details", { class: "broken" },
    make("summary", {}, `Not served: ${broken.map((each) => each.name).join(", ")}`),
    ...broken.flatMap(({ problems }) => problems.map((each) => make("p", {}, each))))
  if (!workflows.length) return faults
  const which = make("select", { id: "which" }, workflows.map((each) => make("option", { value: each.name }, each.name)))
  const input = make("textarea", { id: "input", rows: 2 })
  const form = make("form", { onsubmit: async (event) => {
    event.preventDefault()
    try {
      const body = { workflow: which.value }
      if (input.value.trim()) body.input = parsed(input.value)
      location.hash = `run=${(await page.server.post("/runs", body)).run_id}`
    } catch (error) {
      problem(error)
    }
  } }, make("div", { class: "bar" }, make("label", { for: "which" }, "Workflow "), which, make("button", {}, "Start")),
  make("label", { for: "input" }, "Input: a text, or JSON"), input)
  const again = page.again // a run that is to be run again with changes
  page.again = null
  if (again) {
    which.value = again.workflow
    input.value = again.input === null ? "" : typeof again.input === "string" ? again.input : JSON.stringify(again.input, null, 2)
    input.rows = Math.min(16, input.value.split("\n").length + 1)
  }
  return make("div", {}, make("details", { open: Boolean(again) }, make("summary", {}, "Start a run"), form), faults)
}

// How long ago something was, in one unit.
function since(time) {
  const past = Math.max(0, Date.now() / 1000 - time)
  const [by, unit] = past < 60 ? [1, "second"] : past < 3600 ? [60, "minute"] : past < 86400 ? [3600, "hour"] : [86400, "day"]
  return new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "short" }).format(-Math.floor(past / by), unit)
}

// -------------------------------------------------------------------------------------- inbox

// The open questions of all runs.
async function inbox(isCurrent) {
  const place = make("div")
  let known = ""
  const load = async () => {
    try {
      const { questions } = await page.server.get("/questions")
      lost(false)
      const key = JSON.stringify(questions)
      if (key === known) return // what is being typed stays
      known = key
      place.replaceChildren(...(questions.length ? questions.map(({ run_id, workflow, touched, question }) => make("section", {},
        make("p", {}, make("a", { href: `#run=${encodeURIComponent(run_id)}` }, `${workflow} ${run_id}`), make("span", { class: "soft" }, ` since ${ago(touched)}`)),
        questionCard({ ...question, by: question.node }, async (value) => {
          try {
            await page.server.post(`/runs/${encodeURIComponent(run_id)}/answers`, { answers: { [question.id]: value } })
            await load()
          } catch (error) {
            problem(error)
          }
        }))) : [make("p", {}, "No run waits for an answer.")]))
    } catch (error) {
      if (error instanceof TypeError) lost(true)
      else problem(error)
    }
  }
  if (!isCurrent()) return
  show(make("nav", {}, make("a", { href: "#" }, "← all runs")), make("h1", {}, "Questions that wait"), place)
  const timer = setInterval(() => document.hidden || load(), EVERY)
  leave = () => clearInterval(timer)
  await load()
}

// ------------------------------------------------------------------------------------ routes

async function openRun(runId, at = 0) {
  const stop = new AbortController()
  leave()
  leave = () => stop.abort()
  show(make("p", { class: "soft" }, "Loading …"))
  const path = `/runs/${encodeURIComponent(runId)}`
  const [info, { plan, layout }] = await Promise.all([page.server.get(path), page.server.get(`${path}/plan`)])
  if (stop.signal.aborted) return // another page was opened meanwhile
  const view = new RunPage(runId, info, plan, layout)
  document.title = `axil: ${info.workflow} ${runId}`
  await page.server.follow(runId, (kind, data) => {
    view.receive(kind, data)
    if (at && kind === "step" && data.number === at) requestAnimationFrame(() => view.goTo(at - 1))
  }, stop.signal, lost)
}
page.open = openRun

async function route() {
  leave()
  leave = () => {}
  onKeys(null)
  const own = (turns += 1), isCurrent = () => own === turns
  const wanted = new URLSearchParams(location.hash.slice(1))
  if (wanted.has("token")) { // not in the address bar, nor in the history
    sessionStorage.setItem("token", wanted.get("token"))
    wanted.delete("token")
    history.replaceState(null, "", `#${wanted}`)
    return begin()
  }
  try {
    document.title = "axil"
    if (wanted.get("run")) await openRun(wanted.get("run"), Number(wanted.get("at")))
    else if (wanted.get("compare")) await compare(wanted.get("compare").split(","), isCurrent)
    else if (wanted.has("inbox")) await inbox(isCurrent)
    else if (wanted.has("edit")) await (await import("/page/editor.js")).edit(wanted.get("edit"), isCurrent, (stop) => (leave = stop))
    else await listRuns(isCurrent)
  } catch (error) {
    if (error.status === 401) return askForToken()
    if (!page.app.querySelector("main")) show()
    problem(error)
  }
}

async function begin() {
  const data = document.getElementById("exported")
  if (data) {
    page.server = new Exported(JSON.parse(data.textContent))
    return openRun(page.server.data.run.run_id)
  }
  page.server = new Server(sessionStorage.getItem("token") || "")
  try {
    if (location.hash.includes("token=")) return route()
    page.me = await page.server.get("/me")
  } catch (error) {
    return error.status === 401 ? askForToken() : (show(), problem(error))
  }
  await route()
}

if (!document.getElementById("exported")) window.addEventListener("hashchange", route)
begin()
