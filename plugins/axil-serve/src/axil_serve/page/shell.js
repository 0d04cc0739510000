// What every page has: the server, the caller, the bar of places, problems and keys.
import { make } from "./dom.js"

export const page = { server: null, me: null, app: null, status: null, open: null, again: null, given: [] }

export const may = (right) => !page.server.isExported && page.me.rights.includes(right)

// The places of the page: its name, its part of the address, its key, and the right that it needs.
const PLACES = [["Runs", "", "r"], ["Workflows", "workflows", "w"], ["Chats", "sessions", "c"], ["Inbox", "inbox", "i"], ["Evaluations", "evaluations", "v"], ["Editor", "edit=", "e"]]
const KEYS = [...PLACES.map(([name, , key]) => [key, name]), ["n", "start a run"], ["/", "search"], ["j k", "from run to run"], ["?", "these keys"],
  ["x", "of a run: where it failed"], ["a", "answer what is asked"], ["g t s o f", "of a run: graph, timeline, steps, costs, files"], ["k", "of a node: fork from its last firing"],
  ["p", "of a fork: compare it"], ["b", "of a run: run it again"], ["d", "of a run: save it as HTML"], ["← ↑ → ↓ Enter f", "in a graph: move, choose, fold"], ["Escape", "choose nothing"], ["Ctrl+Enter", "send a form"]]
const OFF = "axil-keys-off"

let own = null

// What keys do on a page; null: nothing of its own. What `handle` returns does not count: a handler
// that returns false would take every key from the browser.
export function onKeys(handle) {
  own = handle
}

// Whether single keys are turned off; where nothing is kept they are on.
function areOff() {
  try {
    return localStorage.getItem(OFF) === "yes"
  } catch {
    return false
  }
}

const isTyping = (target) => target instanceof Element && Boolean(target.closest("input:not([type=checkbox]):not([type=range]), textarea, select, dialog"))

// Single keys act where nothing is typed, and can be turned off.
export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) return event.target.form.requestSubmit()
    if (own) own(event, isTyping(event.target) || areOff() || event.ctrlKey || event.metaKey || event.altKey)
    if (event.defaultPrevented || page.server.isExported || !page.me) return
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || areOff()) return
    const place = placesOf().find(([, , key]) => key === event.key)
    if (place && !event.target.closest(".graph")) location.hash = place[1]
    else if (event.key === "n" && may("run")) location.hash = "start"
    else if (event.key === "?") keysDialog()
    else if (event.key === "/") page.app.querySelector("input[type=search]")?.focus()
    else return
    event.preventDefault()
  })
}

function keysDialog() {
  const off = make("input", { type: "checkbox", id: "keys-off", onchange: () => localStorage.setItem(OFF, off.checked ? "yes" : "no") })
  off.checked = areOff()
  const dialog = make("dialog", { "aria-label": "keys", onclose: () => dialog.remove() }, make("h2", {}, "Keys"),
    make("dl", { class: "keys" }, KEYS.flatMap(([key, does]) => [make("dt", {}, key.split(" ").map((each) => make("kbd", {}, each))), make("dd", {}, does)])),
    make("label", {}, off, " turn single keys off"), make("form", { method: "dialog", class: "bar" }, make("button", {}, "Close")))
  page.app.append(dialog)
  dialog.showModal()
}

const placesOf = () => PLACES.filter(([name]) => name !== "Editor" || page.me.files)

function bar() {
  const at = location.hash.slice(1).split(/[=&]/)[0]
  const isAt = (to) => [to.replace("=", ""), { "": "run", sessions: "chat", evaluations: "evaluation" }[to]].includes(at) || (to === "" && ["compare", "start"].includes(at))
  return make("nav", { class: "places", "aria-label": "places" }, make("a", { href: "#", class: "name" }, "axil"),
    make("div", {}, placesOf().map(([name, to, key]) => make("a", { href: `#${to}`, title: `key ${key}`, ...(isAt(to) ? { "aria-current": "page" } : {}) }, name,
      name === "Inbox" ? make("b", { class: "count", hidden: !page.waiting }, page.waiting || "") : null))),
    may("run") ? make("a", { href: "#start", class: "primary", title: "key n" }, "New run") : null,
    page.me.way === "session" ? make("button", { type: "button", onclick: signOut }, `Sign out ${page.me.name}`) : null)
}

async function signOut() {
  const answer = await fetch("logout", { method: "POST" })
  location.assign(answer.ok ? (await answer.json()).location : "./")
}

// How many questions wait, at the link to them.
export function waiting(count) {
  page.waiting = count
  const shown = page.app.querySelector(".places .count")
  if (shown) Object.assign(shown, { hidden: !count, textContent: count || "" })
}

export function show(...inside) {
  page.status.textContent = "" // of what was shown before
  page.app.removeAttribute("aria-busy")
  page.app.replaceChildren(...[page.server && !page.server.isExported && page.me ? bar() : null, make("main", {}, inside), page.status].filter(Boolean))
}

// What a page says where nothing is there yet: what it is for, and how something comes to be there.
export const empty = (title, ...inside) => make("section", { class: "empty" }, make("h2", {}, title), inside)

export function problem(error) {
  const line = make("p", { class: "problem", role: "alert" }, error.message || String(error))
  const main = page.app.querySelector("main")
  const old = page.app.querySelector("p.problem")
  if (old) old.remove()
  if (main) main.prepend(line)
  line.scrollIntoView({ block: "nearest" })
}

// Do something that may be refused; what was refused is said.
export async function tried(act) {
  try {
    return await act()
  } catch (error) {
    if (error instanceof TypeError && /fetch|network/i.test(error.message)) lost(true)
    else problem(error)
    return undefined
  }
}

// Go to another place; what waits for it is over when this one is not shown any more. A press may come before.
export const turnTo = (place) => new Promise((done) => {
  window.addEventListener("hashchange", done, { once: true })
  location.hash = place
})

// An act that is not begun again while it is under way.
export function once(act) {
  let isUnderWay = false
  return async (...given) => {
    if (isUnderWay) return undefined
    isUnderWay = true
    try {
      return await act(...given)
    } finally {
      isUnderWay = false
    }
  }
}

// Say that the connection is lost, or that it is there again.
export function lost(isLost) {
  const main = page.app.querySelector("main"), old = page.app.querySelector(".lost")
  if (!isLost && old) old.remove()
  if (isLost && !old && main) main.prepend(make("p", { class: "notice lost", role: "alert" }, "The connection to the server is lost: what is shown may be old. Connecting again …"))
}
