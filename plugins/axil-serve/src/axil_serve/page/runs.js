// The list of runs: filters, searches, and runs to be compared.
import { ago, button, keep, LongList, make, money, seconds, since } from "./dom.js"
import { takeDrops } from "./files.js"
import { empty, lost, may, onKeys, page, show, tried, waiting } from "./shell.js"

const EVERY = 2000 // milliseconds between two looks at the runs
const HEADS = ["", "status", "workflow", "input", "changed", "time", "cost", "steps", "chat or fork", "run"]

export async function listRuns(wanted, isCurrent, leaving) {
  const search = make("input", { type: "search", id: "search", placeholder: "filter, or search" })
  const count = make("span", { class: "soft", role: "status" })
  const marked = new Set()
  let runs = [], found = [], next = null
  const inside = make("div"), none = make("div")
  const side = button("Compare the marked", () => (location.hash = `compare=${[...marked].map(encodeURIComponent).join(",")}`), { disabled: true })
  const list = new LongList("runs", (at) => {
    const run = found[at]
    const mark = make("input", { type: "checkbox", "aria-label": `mark ${run.run_id}`, onclick: (event) => event.stopPropagation(), onchange: () => {
      if (!marked.delete(run.run_id)) marked.add(run.run_id)
      side.disabled = marked.size < 2
    } })
    mark.checked = marked.has(run.run_id)
    const time = run.status === "running" ? Math.max(run.seconds, Date.now() / 1000 - run.begun) : run.seconds
    return [make("span", {}, mark), make("span", { class: `status is-${run.status}` }, run.status), make("b", {}, run.workflow),
      make("span", { class: "soft", title: run.input }, run.input), make("span", { title: ago(run.touched) }, since(run.touched)),
      make("span", { class: "number" }, seconds(time)), make("span", { class: "number" }, money(run.cost) || (run.tokens ? `${run.tokens} tok` : "")),
      make("span", { class: "number" }, run.steps), make("span", {}, [run.session, run.forked_from ? `fork of ${run.forked_from}` : ""].filter(Boolean).join(" ")),
      make("span", {}, make("a", { href: `#run=${encodeURIComponent(run.run_id)}` }, run.run_id))]
  }, (at) => (location.hash = `run=${encodeURIComponent(found[at].run_id)}`), { height: matchMedia("(max-width: 800px)").matches ? 62 : 36, isPlain: true })
  list.place.classList.add("runs")
  const heads = make("div", { class: "heads", "aria-hidden": "true" }, HEADS.map((each) => make("span", {}, each)))
  const draw = () => {
    const text = search.value.toLowerCase()
    found = runs.filter((run) => JSON.stringify(run).toLowerCase().includes(text))
    count.textContent = runs.length ? `${found.length} of ${runs.length}` : ""
    heads.hidden = list.place.hidden = !found.length
    const isFiltered = Boolean(status.value || workflow.value || search.value)
    keep(none, found.length ? [] : [isFiltered
      ? ["filtered", () => empty("No run fits", make("p", {}, "Choose another status or workflow, clear the filter, or search in what runs said."))]
      : ["", () => empty("No runs yet", make("p", {}, "A run is one way of an input through a workflow. It is kept in the journal, so it can be looked at, answered, continued and changed later."),
        may("run") ? make("p", {}, make("a", { href: "#start", class: "primary" }, "Start the first one")) : null,
        make("p", { class: "soft" }, "A run of ", make("code", {}, "axil run … --journal"), " on the same journal shows up here, too."))]])
    list.show(found.length)
  }
  const status = make("select", { id: "status", onchange: () => again() }, make("option", { value: "" }, "any"),
    ["queued", "running", "paused", "done", "failed", "limited", "cancelled"].map((each) => make("option", { selected: each === wanted.get("status") }, each)))
  const workflow = make("select", { id: "of", onchange: () => again() }, make("option", { value: "" }, "any"))
  const asking = () => `limit=200&status=${status.value}&workflow=${encodeURIComponent(workflow.value)}`
  const again = () => {
    Object.assign(list.place, { scrollTop: 0 })
    runs = []
    return load()
  }
  const waits = make("a", { href: "#inbox", class: "waits", hidden: true })
  const load = () => tried(async () => {
    // the first page again; older ones stay as they were
    const asked = asking(), [fresh, { questions }] = await Promise.all([page.server.get(`/runs?${asked}`), page.server.get("/questions")])
    lost(false)
    if (asked !== asking() || !isCurrent()) return // another filter was chosen meanwhile
    waits.hidden = !questions.length
    waits.textContent = questions.length === 1 ? "1 question waits" : `${questions.length} questions wait`
    waiting(questions.length)
    const known = new Set(fresh.runs.map((run) => run.run_id))
    if (!runs.length || !fresh.next) next = fresh.next
    const last = fresh.runs.at(-1)
    runs = [...fresh.runs, ...(fresh.next ? runs.filter((run) => !known.has(run.run_id) && run.touched <= last.touched) : [])]
    more.hidden = !next
    draw()
  })
  const more = button("More runs", () => tried(async () => {
    const older = await page.server.get(`/runs?${asking()}&after=${encodeURIComponent(next)}`)
    const known = new Set(runs.map((run) => run.run_id))
    runs.push(...older.runs.filter((run) => !known.has(run.run_id)))
    next = older.next
    more.hidden = !next
    draw()
  }), { hidden: true })
  search.addEventListener("input", draw)
  // what runs said is searched by the server
  const within = () => tried(async () => {
    const text = search.value.trim()
    if (!text) return inside.replaceChildren()
    const { found: places, complete } = await page.server.get(`/search?q=${encodeURIComponent(text)}`)
    return inside.replaceChildren(make("h2", {}, `In what runs said: ${places.length}${complete ? "" : " or more"} runs`),
      make("ul", { class: "plain" }, places.map((each) => make("li", {}, make("a", { href: `#run=${encodeURIComponent(each.run_id)}&at=${each.number}` },
        `${each.workflow} ${each.run_id}`), " ", make("span", { class: `status is-${each.status}` }, each.status), " ",
      make("span", { class: "soft" }, `${each.activation || each.kind}, step ${each.number}${each.steps > 1 ? ` and ${each.steps - 1} more` : ""}: `), withMark(each.text, text)))))
  })
  search.addEventListener("change", within)
  const { workflows, broken } = await page.server.get("/workflows")
  const named = [...new Set([...workflows.map((each) => each.name), ...(wanted.get("workflow") ? [wanted.get("workflow")] : [])])]
  workflow.append(...named.map((each) => make("option", { selected: each === wanted.get("workflow") }, each)))
  if (!isCurrent()) return
  show(
    make("header", {}, make("h1", {}, "Runs"), count, waits),
    broken.length ? make("p", { class: "notice" }, `${broken.length === 1 ? "A workflow is" : `${broken.length} workflows are`} not served: `, make("a", { href: "#workflows" }, broken.map((each) => each.name).join(", "))) : null,
    make("div", { class: "bar filters" }, make("label", { for: "search" }, "Search"), search, button("Search in what runs said", within),
      make("label", { for: "status" }, "Status"), status, make("label", { for: "of" }, "of"), workflow, side),
    heads, list.place, none, more, inside,
  )
  if (may("run")) {
    takeDrops(page.app.querySelector("main"), (files) => {
      page.given = [...files]
      location.hash = "start"
    })
  }
  onKeys((event, isTaken) => { // from run to run
    const by = isTaken ? 0 : { j: 1, k: -1 }[event.key]
    if (!by || !found.length) return
    const row = document.activeElement.closest("[data-at]") // newer runs may have come before it
    const at = Math.min(found.length - 1, Math.max(0, (row ? Number(row.dataset.at) : -1) + by))
    list.reveal(at)
    list.draw()
    list.place.querySelector(`#row-${at} a`).focus({ preventScroll: true })
    event.preventDefault()
  })
  const timer = setInterval(() => document.hidden || load(), EVERY)
  leaving(() => clearInterval(timer))
  await load()
}

// A text in which what was looked for is marked.
function withMark(text, wanted) {
  const at = text.toLowerCase().indexOf(wanted.toLowerCase())
  return at < 0 ? text : [text.slice(0, at), make("mark", {}, text.slice(at, at + wanted.length)), text.slice(at + wanted.length)]
}
