// The pages of workflows and of open questions.
import { ago, keep, make } from "./dom.js"
import { answerFirst, questionCard } from "./question.js"
import { empty, lost, may, onKeys, page, show, tried, waiting } from "./shell.js"
import { faultsOf } from "./start.js"

const EVERY = 2000

// The workflows that are served: what they take, and the ways to begin.
export async function listWorkflows(isCurrent) {
  const { workflows, broken } = await page.server.get("/workflows")
  if (!isCurrent()) return
  const own = (each) => encodeURIComponent(each.name)
  show(make("header", {}, make("h1", {}, "Workflows"), page.me.files ? make("a", { href: "#edit=" }, "edit workflow files") : null),
    faultsOf(broken),
    workflows.length ? make("div", { class: "cards" }, workflows.map((each) => make("section", { class: "card", "aria-label": each.name },
      make("h2", {}, each.name), each.description ? make("p", {}, each.description) : null, make("p", { class: "soft" }, "takes ", taken(each)),
      make("div", { class: "bar" }, may("run") ? make("a", { href: `#start=${own(each)}`, class: "primary" }, "Start") : null,
        may("run") && each.chat ? make("a", { href: `#chat=&workflow=${own(each)}`, class: "button" }, "Chat") : null,
        make("a", { href: `#runs&workflow=${own(each)}` }, "its runs")))))
      : empty("No workflow is served here", make("p", {}, "A workflow is a graph of nodes: a file, or a graph in Python. Serve one with ", make("code", {}, "axil serve flow.yaml"), ", or a folder of them."),
        page.me.files ? make("p", {}, make("a", { href: "#edit=", class: "primary" }, "Make one in the editor")) : null))
}

function taken({ payload, inputs }) {
  const names = Object.keys(inputs.properties), needed = new Set(inputs.required)
  if (payload === "messages") return "a text, or a conversation"
  if (!names.length) return "any input"
  return names.map((name, at) => [at ? ", " : "", make("code", {}, name), needed.has(name) ? "" : "?"])
}

// The open questions of all runs.
export async function inbox(isCurrent, leaving) {
  const place = make("div")
  const load = () => tried(async () => {
    const { questions } = await page.server.get("/questions")
    lost(false)
    waiting(questions.length)
    keep(place, questions.length ? questions.map(({ run_id, workflow, touched, question }) => [JSON.stringify([run_id, question.id, touched]), () => make("section", {},
      make("p", {}, make("a", { href: `#run=${encodeURIComponent(run_id)}` }, `${workflow} ${run_id}`), make("span", { class: "soft" }, ` since ${ago(touched)}`)),
      questionCard({ ...question, by: question.node, label: `question of ${workflow} ${run_id} ${question.node}` }, (value) => tried(async () => {
        await page.server.post(`/runs/${encodeURIComponent(run_id)}/answers`, { answers: { [question.id]: value } })
        await load()
      })))]) : [["", () => empty("No run waits for an answer", make("p", {}, "Where a run asks a person – a node ", make("code", {}, "human"), ", a tool that needs approval, ", make("code", {}, "await ctx.ask(…)"),
      " – its question stands here until it is answered. The run goes on from there, also days later."))]])
  })
  if (!isCurrent()) return
  show(make("h1", {}, "Questions that wait"), place)
  onKeys((event, isTaken) => !isTaken && event.key === "a" && answerFirst(place, event))
  const timer = setInterval(() => document.hidden || load(), EVERY)
  leaving(() => clearInterval(timer))
  await load()
}
