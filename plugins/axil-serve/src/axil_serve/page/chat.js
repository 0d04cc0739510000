// Conversations: the sessions of the caller's runs, and one of them as a chat.
import { afterPress, ago, button, details, keep, make, pictured, pictureOf, renew, since, table } from "./dom.js"
import { FilesGiven, fillPictures, takeDrops } from "./files.js"
import { questionCard } from "./question.js"
import { Live, replyOf } from "./run.js"
import { empty, may, once, page, show, tried } from "./shell.js"
import { chatOf } from "./runpage.js"

export async function listSessions(isCurrent) {
  const [{ sessions }, { workflows }] = await Promise.all([page.server.get("/sessions"), page.server.get("/workflows")])
  if (!isCurrent()) return
  const able = may("run") ? workflows.filter((each) => each.chat) : []
  const begin = able.length ? make("div", { class: "bar" }, "New chat with", able.map((each) => make("a", { href: `#chat=&workflow=${encodeURIComponent(each.name)}`, class: "button" }, each.name))) : null
  const rows = sessions.map(({ session, runs, last }) => [make("td", {}, make("a", { href: chatOf(last) }, session)), last.workflow, make("td", { class: "number" }, runs),
    make("td", {}, make("span", { class: `status is-${last.status}` }, last.status)), make("td", { title: ago(last.touched) }, since(last.touched)), ...(page.me.look === "all" ? [last.owner || "–"] : [])])
  show(make("h1", {}, "Chats"), begin,
    rows.length ? make("div", { class: "scroll" }, table(["session", "workflow", "runs", "last run", "changed", ...(page.me.look === "all" ? ["caller"] : [])], rows))
      : empty("No conversations yet", make("p", {}, "A session is a row of runs that continue each other: each receives what was said before. A chat makes one, and so does ",
        make("code", {}, '"session": "name"'), " in ", make("code", {}, "POST /v1/runs"), " and a conversation of OpenAI's clients."),
      able.length ? null : make("p", { class: "soft" }, "A workflow can be chatted with if it takes messages, or one text.")))
}

const textOf = (content) => (typeof content === "string" ? [make("p", { class: "lines" }, content)]
  : Array.isArray(content) ? content.flatMap((part) => (part.type === "text" ? textOf(part.text) : part.path ? [make("p", { class: "soft" }, `file: ${part.path.split("/").pop()}`), pictureOf(part)] : pictured(part)))
    : pictured(content))

// One conversation; a new one has no name yet.
export async function chat(wanted, isCurrent, leaving) {
  const workflow = wanted.get("workflow") || "", owner = wanted.get("owner") || page.me.name, isOwn = owner === page.me.name
  let session = wanted.get("chat"), following = null
  const said = make("div", { class: "said", role: "log", "aria-label": "conversation", tabindex: 0 }), asks = make("div")
  const text = make("textarea", { id: "say", rows: 2, placeholder: "Write to the workflow", "aria-label": "message" })
  const files = new FilesGiven()
  const send = make("button", { class: "primary" }, "Send")
  const stop = button("Stop", () => following && tried(() => page.server.post(`/runs/${following}/cancel`)), { hidden: true })
  const form = make("form", { class: "say", onsubmit: (event) => {
    event.preventDefault()
    say()
  } }, text, make("div", { class: "bar" }, files.place, send, stop))
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
    event.preventDefault()
    say()
  })
  const bubble = ({ role, content, run_id, status }) => make("article", { class: `bubble is-${role}`, "aria-label": role },
    role === "error" ? make("p", { class: "is-failed lines" }, content) : textOf(content),
    run_id ? make("p", { class: "soft small" }, status && status !== "done" ? `${status} · ` : "", make("a", { href: `#run=${encodeURIComponent(run_id)}` }, "how it came about")) : null)
  const busy = (isBusy) => {
    stop.hidden = !isBusy
    send.disabled = isBusy
  }
  // What comes is brought into sight, unless its reader has gone back.
  const atEnd = (put) => {
    const isThere = said.scrollHeight - said.scrollTop - said.clientHeight < 40 // pixels
    put()
    if (isThere) said.scrollTop = said.scrollHeight
  }
  const ask = (questions) => keep(asks, questions.map(({ run_id, ...question }) => [JSON.stringify([run_id, question.id]), () => questionCard({ ...question, by: question.node }, (value) => tried(async () => {
    await page.server.post(`/runs/${run_id}/answers`, { answers: { [question.id]: value } })
    ask(questions.filter((each) => each.id !== question.id || each.run_id !== run_id))
    await follow(run_id)
  }))]))
  const load = async () => {
    const found = session ? await page.server.get(`/sessions/messages?session=${encodeURIComponent(session)}&owner=${encodeURIComponent(owner)}`).catch((error) => {
      if (error.status === 404) return { messages: [], questions: [], working: "" } // nothing was said in it yet
      throw error
    }) : { messages: [], questions: [], working: "" }
    if (!isCurrent()) return
    atEnd(() => keep(said, found.messages.length ? found.messages.map((each, at) => [`${at}`, () => bubble(each), JSON.stringify(each)])
      : [["", () => empty(`A chat with ${workflow}`, make("p", {}, "What you write is the input of a run; what the run gives is the reply. The next message continues it. Files that you add lie in the run's folder."))]]))
    found.messages.forEach(({ run_id }, at) => run_id && fillPictures(run_id, said.children[at]))
    ask(found.questions)
    if (found.working && found.working !== following) follow(found.working)
  }
  // Show what a run says while it says it; then what came of it.
  const follow = async (runId) => {
    following = runId
    busy(true)
    const own = new AbortController(), words = make("div", { class: "lines" }), doing = make("p", { class: "soft small" }, "is at work …"), live = new Live()
    leaving(() => own.abort())
    const typing = make("article", { class: "bubble is-assistant is-live", "aria-label": "assistant" }, words, doing)
    atEnd(() => said.append(typing))
    const draw = () => {
      const at = [...live.firings.values()].at(-1)
      if (!at) return
      const reply = replyOf(at.chunks), call = reply.notes.filter((each) => each.kind === "tool_call").at(-1)
      atEnd(() => renew(words, reply.thoughts && !reply.text ? details("reasoning", make("p", { class: "lines soft" }, reply.thoughts)) : "", reply.text))
      doing.textContent = `${at.path.join(" / ")}${call ? ` calls ${call.name}` : " is at work"} …`
    }
    await tried(() => page.server.follow(runId, (kind, data) => {
      if (kind === "step") live.end(data)
      else if (kind !== "end" && kind !== "connected" && kind !== "reset") live.receive(kind, data)
      if (kind === "step" && (data.kind === "asked" || (data.kind === "ended" && data.status === "paused"))) own.abort()
      requestAnimationFrame(() => afterPress(draw))
    }, own.signal))
    following = null
    if (isCurrent()) await tried(load)
    if (!following) busy(false) // load may have found another at work
    if (!isCurrent()) return
    const last = said.lastElementChild
    page.status.textContent = last ? last.textContent.slice(0, 300) : ""
    const at = document.activeElement // elsewhere something is read, or written
    if (at === document.body || at === send || (at === text && !text.value)) (asks.querySelector("input, button") || text).focus()
  }
  const say = once(() => tried(async () => {
    const content = text.value.trim()
    if ((!content && !files.given.size) || following) return
    const isFirst = !session, name = session || newName(workflow)
    let paths, run_id
    text.value = "" // what is written from now on is the next message
    busy(true)
    try {
      await files.arrived()
      const { ids } = files
      paths = files.paths
      files.clear()
      run_id = (await page.server.post("/sessions/messages", { session: name, workflow, text: content, files: ids })).run_id
    } catch (error) {
      text.value = [content, text.value].filter(Boolean).join("\n")
      busy(false)
      throw error
    }
    session = name
    if (isFirst) history.replaceState(null, "", chatOf({ session, workflow, owner: page.me.name }))
    said.querySelector(".empty")?.remove()
    said.append(bubble({ role: "user", content: [content, ...paths.map((path) => `file: ${path.split("/").pop()}`)].filter(Boolean).join("\n") }))
    said.scrollTop = said.scrollHeight
    await follow(run_id)
  }))
  show(make("header", {}, make("h1", {}, "Chat with ", workflow), make("span", { class: "soft" }, session || "new")),
    make("div", { class: "chat" }, said, asks, !may("run") ? null : isOwn ? form : make("p", { class: "soft" }, `A conversation of ${owner}: only its owner continues it.`)))
  if (may("run") && isOwn) takeDrops(page.app.querySelector("main"), (dropped) => files.add(dropped))
  await load()
  if (may("run") && isOwn) text.focus()
}

const newName = (workflow) => `${workflow.slice(0, 40)}-${new Date().toISOString().slice(0, 16).replace("T", "-")}-${Math.random().toString(36).slice(2, 6)}`
