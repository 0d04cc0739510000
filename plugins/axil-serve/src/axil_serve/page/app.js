// The page: which place an address is, and the token.
import { chat, listSessions } from "./chat.js"
import { compare } from "./compare.js"
import { listenToPresses, make } from "./dom.js"
import { evaluation, listEvaluations } from "./evaluations.js"
import { inbox, listWorkflows } from "./places.js"
import { listRuns } from "./runs.js"
import { openRun } from "./runpage.js"
import { Server } from "./server.js"
import { listenToKeys, onKeys, page, problem, show } from "./shell.js"
import { start } from "./start.js"

page.app = document.getElementById("app")
page.status = make("div", { class: "quiet", role: "status", "aria-live": "polite" })
let leave = () => {}, turns = 0

function askForToken() {
  page.me = null
  const field = make("input", { type: "password", id: "token", autocomplete: "off", size: 50 })
  const form = make("form", { class: "bar", onsubmit: (event) => {
    event.preventDefault()
    sessionStorage.setItem("token", field.value.trim())
    begin()
  } }, make("label", { for: "token" }, "Token "), field, " ", make("button", { class: "primary" }, "Open"))
  const place = document.querySelector("meta[name=sign-in]") // the server has a sign-in
  const signIn = place && make("p", {}, make("a", { id: "sign-in", href: `${place.content}?next=${encodeURIComponent(location.hash)}` }, "Sign in"), ", or give a token.")
  show(make("h1", {}, "axil"), signIn || make("p", {}, "The server printed a token when it started."), form)
  field.focus()
}

async function route() {
  leave()
  onKeys(null)
  const own = (turns += 1), isCurrent = () => own === turns
  const stops = []
  const leaving = (stop) => (isCurrent() ? stops.push(stop) : stop())
  leave = () => stops.forEach((stop) => stop())
  const wanted = new URLSearchParams(location.hash.slice(1))
  if (wanted.has("token")) { // not in the address bar, nor in the history
    sessionStorage.setItem("token", wanted.get("token"))
    wanted.delete("token")
    history.replaceState(null, "", `#${wanted}`)
    return begin()
  }
  page.open = (runId) => (location.hash === `#run=${encodeURIComponent(runId)}` ? route() : (location.hash = `run=${encodeURIComponent(runId)}`))
  page.app.setAttribute("aria-busy", "true") // until something is shown
  try {
    document.title = "axil"
    const places = {
      run: (name) => openRun(name, Number(wanted.get("at")), leaving),
      compare: (name) => compare(name.split(","), isCurrent),
      start: (name) => start(name, isCurrent),
      workflows: () => listWorkflows(isCurrent),
      sessions: () => listSessions(isCurrent),
      chat: () => chat(wanted, isCurrent, leaving),
      inbox: () => inbox(isCurrent, leaving),
      evaluations: () => listEvaluations(isCurrent),
      evaluation: (name) => evaluation(name.split(","), isCurrent),
      edit: async (name) => (await import("./editor.js")).edit(name, isCurrent, leaving),
    }
    const found = Object.keys(places).find((each) => wanted.has(each))
    await (found ? places[found](wanted.get(found)) : listRuns(wanted, isCurrent, leaving))
  } catch (error) {
    if (error.status === 401) return askForToken()
    if (page.app.hasAttribute("aria-busy")) show()
    problem(error)
  }
}

async function begin() {
  page.server = new Server(sessionStorage.getItem("token") || "")
  try {
    if (location.hash.includes("token=")) return route()
    page.me = await page.server.get("/me")
  } catch (error) {
    return error.status === 401 ? askForToken() : (show(), problem(error))
  }
  await route()
}

listenToKeys()
listenToPresses()
window.addEventListener("hashchange", route)
begin()
