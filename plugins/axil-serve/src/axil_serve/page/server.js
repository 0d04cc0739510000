// The server of the page, and the run that is written into an exported page.

export class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

const SILENCE = 2500 // milliseconds: the server says something once a second
const DEAD = 15000
const LONGEST_WAIT = 2000

export class Server {
  constructor(token) {
    this.token = token
    this.isExported = false
  }

  async ask(path, options = {}) {
    const headers = { ...options.headers, authorization: `Bearer ${this.token}` }
    if (options.body) headers["content-type"] = options.type || "application/json"
    const answer = await fetch(`v1${path}`, { ...options, headers, cache: "no-store" })
    if (!answer.ok) {
      const found = await answer.json().catch(() => ({}))
      throw new Refused(answer.status, found.error ? `${found.error.id} ${found.error.message}` : answer.statusText)
    }
    return answer
  }

  async get(path) {
    return (await this.ask(path)).json()
  }

  async post(path, body = {}, options = {}) {
    return (await this.ask(path, { method: "POST", body: JSON.stringify(body), ...options })).json()
  }

  // Call `receive(kind, data)` for each event until the run has ended, and connect again behind the last one when the
  // connection breaks. `told(true)`: it is lost; `told(false)`: it is there again. `last`: the event behind which it begins. Throws Refused.
  async follow(runId, receive, signal, told = () => {}, last = "") {
    let wait = 500
    while (!signal.aborted) {
      const own = new AbortController(), stop = () => own.abort()
      let silent, dead
      const heard = (isThere) => {
        clearTimeout(silent)
        clearTimeout(dead)
        if (isThere) told(false)
        silent = setTimeout(() => told(true), SILENCE)
        dead = setTimeout(stop, DEAD)
      }
      signal.addEventListener("abort", stop)
      try {
        heard(false)
        const headers = last ? { "last-event-id": last } : {}
        const answer = await this.ask(`/runs/${encodeURIComponent(runId)}/events`, { headers, signal: own.signal })
        heard(true)
        receive("connected", {})
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
        let rest = ""
        for (;;) {
          const { value, done } = await reader.read()
          if (done) break
          heard(true)
          wait = 500
          const blocks = (rest + value).split("\n\n")
          rest = blocks.pop()
          for (const text of blocks) {
            const fields = {}
            for (const line of text.split("\n")) {
              const at = line.indexOf(": ")
              if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2)
            }
            if (signal.aborted) return
            if (fields.id) last = fields.id
            if (fields.data) receive(fields.event, JSON.parse(fields.data))
            if (fields.event === "end") return
          }
        }
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error
      } finally {
        clearTimeout(silent)
        clearTimeout(dead)
        signal.removeEventListener("abort", stop)
      }
      told(true)
      await new Promise((done) => setTimeout(done, wait))
      wait = Math.min(wait * 2, LONGEST_WAIT)
    }
  }
}

export class Exported {
  constructor(data) {
    this.data = data
    this.isExported = true
  }

  async get(path, turned) {
    if (path.includes("/layout")) return this.layout(JSON.parse(decodeURIComponent(path.split("open=")[1])), turned)
    if (path.includes("/state")) {
      const at = decodeURIComponent(path.split("at=")[1])
      return { moment: this.data.states[at] || null }
    }
    if (path.endsWith("/files")) return this.data.files
    if (path.endsWith("/plan")) return { plan: this.data.plan, layout: this.data.layouts.length ? this.data.layouts[0].layout : null }
    return this.data.run
  }

  // The content of a file, where the page has it.
  async ask(path) {
    const file = this.data.files.files.find((each) => path.endsWith(`/${each.file_id}`))
    return { blob: async () => new Blob([Uint8Array.from(atob(file.data), (each) => each.charCodeAt(0))], { type: file.media_type }) }
  }

  // Of the layouts that are here: that which is asked for, or the one with what is around the node that was turned.
  layout(open, turned) {
    const same = (paths, others) => paths.length === others.length && paths.every((each) => others.some((other) => JSON.stringify(each) === JSON.stringify(other)))
    const find = (wanted) => this.data.layouts.find((each) => same(each.open, wanted))
    const isIn = (each) => open.some((other) => JSON.stringify(other) === JSON.stringify(each))
    const upTo = (path) => path.map((_, at) => path.slice(0, at + 1))
    return find(open.filter((each) => upTo(each).every(isIn)))
      || find(turned ? upTo(isIn(turned) ? turned : turned.slice(0, -1)) : []) || this.data.layouts[0]
  }

  async follow(runId, receive) {
    for (const step of this.data.steps) receive("step", step)
    receive("end", {})
  }
}
