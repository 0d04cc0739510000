// Elements, texts and lists. Every text goes in as text: nothing is ever read as markup.

export function make(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag)
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value)
    else if (value !== false && value !== undefined) made.setAttribute(key, value === true ? "" : value)
  }
  for (const each of inside.flat(Infinity)) {
    if (each !== null && each !== undefined) made.append(each instanceof Node ? each : String(each))
  }
  return made
}

export const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "")

// A text with the characters that show nothing, or change how others are shown, as JSON writes them.
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu
export const legible = (value) => shown(value).replace(HIDDEN, (found) =>
  [...Array(found.length).keys()].map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""))
// The arguments of a call that a person is asked about: as they were asked, since JSON has numbers that are none here.
export const callShown = ({ data, text }) => legible(/ with these arguments\?\n(\{[^]*\})\n/.exec(text)?.[1] ?? data.arguments ?? {})
// `key`: what it is known by, if its text grows.
export const block = (value, key) => make("pre", { tabindex: 0, "data-key": key }, shown(value))

// What is carried along an edge: of messages their texts, of anything else its data.
export const areMessages = (value) => Array.isArray(value) && value.length > 0 && value.every((each) => each && typeof each.content === "string" && "role" in each)
export const carried = (value) => (areMessages(value)
  ? value.flatMap((each) => [make("div", { class: "soft" }, [each.role, each.source ? `from ${each.source}` : ""].filter(Boolean).join(", ")), block(each.content)])
  : pictured(value))

// A value with the images in it: shown, and their data left out of the text. Those in files of the run are fetched by `fillPictures`.
const isImage = (value) => Boolean(value) && value.type === "image" && ["data", "path"].some((name) => typeof value[name] === "string") && /^image\/(png|jpeg|gif|webp)$/.test(value.media_type)
export const pictureOf = (part) => (isImage(part) ? make("img", { alt: part.name || part.path, hidden: true, "data-path": part.path }) : null)
export function pictured(value) {
  const images = []
  const text = typeof value === "string" ? value : JSON.stringify(value, (_key, each) => {
    if (!isImage(each)) return each
    if (each.path) {
      images.push(pictureOf(each))
      return each
    }
    images.push(make("img", { alt: each.name || "image", src: `data:${each.media_type};base64,${each.data}` }))
    return { ...each, data: `${each.data.length} characters` }
  }, 2) ?? ""
  return images.length ? [block(text), ...images] : block(text)
}
// What is pressed stays until it is released, or it would not be clicked; a select in which letters are typed stays until they
// have found their choice, or the next letter would begin a new search. What is to be drawn meanwhile is drawn then.
const SEARCH = 1000 // ms: how long browsers wait for the next letter
const held = new Set()
let due = []
function release(by) {
  if (!held.delete(by) || held.size) return
  const acts = due
  due = []
  for (const act of acts) act()
}
export function listenToPresses() {
  let typing
  const listen = (name, act) => window.addEventListener(name, act, true)
  listen("pointerdown", (event) => event.target.closest("select") || held.add("press")) // a list takes the release
  for (const name of ["pointerup", "pointercancel"]) listen(name, () => setTimeout(() => release("press"))) // after the click
  listen("keydown", (event) => {
    if (event.target.tagName !== "SELECT" || event.key.length > 1) return
    held.add("typing")
    clearTimeout(typing)
    typing = setTimeout(() => release("typing"), SEARCH)
  })
  listen("focusout", () => setTimeout(() => release("typing"))) // after the next has the focus
}
export const afterPress = (act) => (held.size ? due.push(act) : act())

// What an element is known by when it is made anew.
const nameOf = (each) => each.dataset.key || each.id || each.getAttribute("href") || each.getAttribute("aria-label") || each.textContent

// The elements of a place that hold what a person does, by what they are known by; of equal ones the last is the first, since new ones come before.
function known(place) {
  const found = new Map(), counts = new Map()
  for (const each of [...place.querySelectorAll("summary, a, button, input, select, textarea, pre, [tabindex]")].reverse()) {
    const name = `${each.tagName} ${nameOf(each)}`, count = counts.get(name) || 0
    counts.set(name, count + 1)
    found.set(`${name} ${count}`, each)
  }
  return found
}

// Where a text is in a place, counted from its beginning and from its end; null: no text of it is selected.
function selectedIn(place) {
  const selection = getSelection()
  if (selection.isCollapsed || !selection.rangeCount || !place.contains(selection.getRangeAt(0).commonAncestorContainer)) return null
  const range = selection.getRangeAt(0), before = range.cloneRange()
  before.selectNodeContents(place)
  before.setEnd(range.startContainer, range.startOffset)
  return { text: range.toString(), start: before.toString().length, all: place.textContent.length }
}

// Select a text again where it is nearest to its place, if it is still there.
function select(place, { text, start, all }) {
  const whole = place.textContent, grown = whole.length - all
  let best = -1, least = Infinity
  for (let at = whole.indexOf(text); text && at >= 0; at = whole.indexOf(text, at + 1)) {
    const far = Math.min(Math.abs(at - start), Math.abs(at - start - grown))
    if (far < least) [best, least] = [at, far]
  }
  if (best < 0) return
  const range = document.createRange(), walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT)
  let passed = 0
  for (let node = walker.nextNode(); node; passed += node.data.length, node = walker.nextNode()) {
    if (passed <= best && best < passed + node.data.length) range.setStart(node, best - passed)
    if (passed + node.data.length < best + text.length) continue
    range.setEnd(node, best + text.length - passed)
    break
  }
  getSelection().removeAllRanges()
  getSelection().addRange(range)
}

// Draw a place anew by `put`: what had the focus has it again, with what is typed in it and its caret; what was unfolded is unfolded,
// what was scrolled is scrolled, and what was selected is selected.
function redrawn(place, put) {
  const before = known(place), selected = selectedIn(place), active = document.activeElement || document.body
  const rolled = [...before].filter(([, each]) => each.scrollTop || each.scrollLeft).map(([name, each]) => [name, each.scrollTop, each.scrollLeft])
  put()
  const after = known(place)
  for (const each of place.querySelectorAll("input, textarea")) each.dataset.given ??= each.value
  if (active.isConnected && place.contains(active)) active.focus({ preventScroll: true }) // it may have been moved
  let isDone = active.isConnected
  for (const [name, old] of before) {
    const now = after.get(name)
    if (!now || now === old) continue
    if (old.tagName === "SUMMARY") now.parentElement.open = old.parentElement.open
    if (old !== active || isDone) continue
    isDone = true
    now.focus({ preventScroll: true })
    if (!("defaultValue" in old) || ["checkbox", "file"].includes(old.type)) continue
    if (old.value !== old.dataset.given) now.value = old.value // it is being typed
    if (now.value === old.value && old.selectionStart !== null) now.setSelectionRange(old.selectionStart, old.selectionEnd, old.selectionDirection)
  }
  for (const [name, top, left] of rolled) if (after.has(name)) Object.assign(after.get(name), { scrollTop: top, scrollLeft: left })
  if (selected && (!getSelection().rangeCount || getSelection().getRangeAt(0).toString() !== selected.text)) select(place, selected)
}

// Put other elements in a place. Where several are drawn, each with a life of its own, `keep` does less.
export function renew(place, ...elements) {
  redrawn(place, () => place.replaceChildren(...elements))
}

// Show elements by their keys, each [key, made, version]: one that is there in this version stays as it is, with what is typed in it.
// Returns whether one was made.
export function keep(place, wanted) {
  const here = new Map([...place.children].map((each) => [each.dataset.key, each])), keys = new Set(wanted.map(([key]) => key))
  const isSame = ([key, , version = ""]) => here.has(key) && here.get(key).dataset.version === version
  if (place.children.length === wanted.length && wanted.every((each, at) => isSame(each) && place.children[at] === here.get(each[0]))) return false
  redrawn(place, () => {
    for (const each of [...place.children]) if (!keys.has(each.dataset.key)) each.remove()
    wanted.forEach((one, at) => {
      const [key, made, version = ""] = one, each = isSame(one) ? here.get(key) : made()
      if (!isSame(one) && here.has(key)) here.get(key).replaceWith(each)
      Object.assign(each.dataset, { key, version })
      if (place.children[at] !== each) place.insertBefore(each, place.children[at] || null)
    })
  })
  return true
}

export const ago = (time) => new Date(time * 1000).toLocaleString()
export const money = (cost) => (cost ? `$${cost.toFixed(4)}` : "")
export const seconds = (value) => (value > 0 && value < 0.1 ? `${(value * 1000).toFixed(1)} ms` : value < 120 ? `${value.toFixed(2)} s`
  : value < 7200 ? `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s` : `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`)
export const sized = (bytes) => (bytes < 1000 ? `${bytes} bytes` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`)
export const button = (text, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text)
export const details = (title, ...inside) => make("details", {}, make("summary", {}, title), inside)

export function table(head, rows, caption = "") {
  return make("table", {}, caption ? make("caption", {}, caption) : null,
    make("thead", {}, make("tr", {}, head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : make("td", {}, cell)))))))
}

export function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

// How long ago something was, in one unit.
export function since(time) {
  const past = Math.max(0, Date.now() / 1000 - time)
  const [by, unit] = past < 60 ? [1, "second"] : past < 3600 ? [60, "minute"] : past < 86400 ? [3600, "hour"] : [86400, "day"]
  return new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "short" }).format(-Math.floor(past / by), unit)
}

// ------------------------------------------------------------------------------ differences

const MOST_LINES = 400

// Lines of two texts: [sign, line], where the sign is " ", "-" (in the first alone) or "+".
export function differing(first, second) {
  const a = first.split("\n"), b = second.split("\n")
  let begin = 0, end = 0
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin += 1
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1
  const x = a.slice(begin, a.length - end), y = b.slice(begin, b.length - end)
  const lines = a.slice(0, begin).map((line) => [" ", line])
  if (x.length > MOST_LINES || y.length > MOST_LINES) {
    lines.push(...x.map((line) => ["-", line]), ...y.map((line) => ["+", line]))
  } else {
    // the length of the longest common part of x[i:] and y[j:]
    const common = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1))
    for (let i = x.length - 1; i >= 0; i -= 1) {
      for (let j = y.length - 1; j >= 0; j -= 1) {
        common[i][j] = x[i] === y[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1])
      }
    }
    let i = 0, j = 0
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) lines.push([" ", x[i++]]), (j += 1)
      else if (j >= y.length || (i < x.length && common[i + 1][j] >= common[i][j + 1])) lines.push(["-", x[i++]])
      else lines.push(["+", y[j++]])
    }
  }
  return [...lines, ...a.slice(a.length - end).map((line) => [" ", line])]
}

// The difference of two values as lines with signs; null: they are equal.
export function difference(first, second) {
  const a = first === undefined ? "" : shown(first), b = second === undefined ? "" : shown(second)
  if (a === b) return null
  return make("pre", { tabindex: 0, class: "difference" }, differing(a, b).map(([sign, line]) =>
    make("span", { class: sign === "+" ? "is-added" : sign === "-" ? "is-removed" : "" }, `${sign} ${line}\n`)))
}

// ------------------------------------------------------------------------------- long lists

// A list of which only the rows in sight are in the page. All rows have one height.
export class LongList {
  // `row(at)` returns the cells of a row; `chosen(at)` is called when one is chosen.
  // Rows that hold links and inputs are those of a plain list, others the options of a list box.
  constructor(label, row, chosen, { height = 30, isPlain = false } = {}) {
    Object.assign(this, { row, chosen, height, isPlain, count: 0, current: -1 })
    this.rows = make("div", { class: "rows" })
    this.place = make("div", { class: "long", role: isPlain ? "list" : "listbox", tabindex: 0, "aria-label": label }, this.rows)
    this.place.addEventListener("scroll", () => this.later())
    this.place.addEventListener("keydown", (event) => this.pressed(event))
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest("[data-at]")
      if (row) this.choose(Number(row.dataset.at))
    })
    new ResizeObserver(() => this.later()).observe(this.place)
  }

  later() {
    if (this.isDue) return
    this.isDue = true
    requestAnimationFrame(() => {
      this.isDue = false
      afterPress(() => this.draw())
    })
  }

  show(count) {
    this.count = count
    this.later()
  }

  draw() {
    const first = Math.max(0, Math.floor(this.place.scrollTop / this.height) - 5)
    const last = Math.min(this.count, Math.ceil((this.place.scrollTop + this.place.clientHeight) / this.height) + 5)
    this.rows.style.height = `${this.count * this.height}px`
    this.place.style.maxHeight = `${this.count * this.height + 4}px`
    const rows = []
    for (let at = first; at < last; at += 1) {
      const own = this.isPlain ? { role: "listitem" } : { role: "option", "aria-selected": String(at === this.current) }
      const made = make("div", { class: at === this.current ? "row is-current" : "row", id: `row-${at}`, "data-at": at, "aria-setsize": this.count,
        "aria-posinset": at + 1, ...own }, this.row(at))
      made.style.top = `${at * this.height}px`
      made.style.height = `${this.height}px`
      rows.push(made)
    }
    renew(this.rows, ...rows)
    if (this.isPlain) return
    const isSeen = this.current >= first && this.current < last
    if (isSeen) this.place.setAttribute("aria-activedescendant", `row-${this.current}`)
    else this.place.removeAttribute("aria-activedescendant")
  }

  reveal(at) {
    const top = at * this.height
    if (top < this.place.scrollTop) this.place.scrollTop = top
    else if (top + this.height > this.place.scrollTop + this.place.clientHeight) this.place.scrollTop = top + this.height - this.place.clientHeight
  }

  choose(at) {
    if (at < 0 || at >= this.count) return
    this.current = at
    this.reveal(at)
    this.draw()
    this.chosen(at)
  }

  pressed(event) {
    if (this.isPlain) return // what is in its rows has the focus
    const page = Math.max(1, Math.floor(this.place.clientHeight / this.height) - 1)
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count }[event.key]
    if (by === undefined) return
    event.preventDefault()
    this.choose(Math.min(this.count - 1, Math.max(0, this.current + by)))
  }
}
