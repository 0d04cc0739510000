// The page of one run in a file, without a server.
import { listenToPresses, make } from "./dom.js"
import { openRun } from "./runpage.js"
import { Exported } from "./server.js"
import { listenToKeys, page } from "./shell.js"

page.app = document.getElementById("app")
page.status = make("div", { class: "quiet", role: "status", "aria-live": "polite" })
page.server = new Exported(JSON.parse(document.getElementById("exported").textContent))
listenToKeys()
listenToPresses()
openRun(page.server.data.run.run_id, 0, () => {})
