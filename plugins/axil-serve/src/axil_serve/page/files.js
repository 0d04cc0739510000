// Files that are given to runs, and what runs have written: seen, previewed and saved.
import { block, button, make, renew, sized, table } from "./dom.js"
import { save } from "./report.js"
import { page, tried } from "./shell.js"

const MOST_SHOWN = 200_000 // bytes of a text in a preview
const MOST_IMAGE = 8_000_000
const MOST_ROWS = 200
const IMAGES = /^image\/(png|jpeg|gif|webp)$/
const TEXTS = /^(text\/|application\/(json|x-yaml|yaml|xml|javascript|toml|x-ndjson))|\.(md|txt|csv|json|jsonl|ya?ml|toml|py|js|log|html?|svg|xml)$/i

// A place into which files are dropped, or chosen by a button; they are uploaded at once.
export class FilesGiven {
  // `changed()` is called when a file has come or gone.
  constructor(changed = () => {}) {
    Object.assign(this, { changed, given: new Map() })
    this.input = make("input", { type: "file", multiple: true, id: "files", class: "quiet", tabindex: -1, "aria-label": "files", onchange: () => {
      this.add(this.input.files)
      this.input.value = ""
    } })
    this.list = make("ul", { class: "chips", "aria-label": "files of the run" })
    this.place = make("div", { class: "drop", role: "group", "aria-label": "files" }, this.input, button("Add files …", () => this.input.click()),
      make("span", { class: "soft" }, "or drop them here"), this.list)
    takeDrops(this.place, (files) => this.add(files))
  }

  // The ids of the files that have arrived, and their paths in the folder of the run.
  get ids() {
    return [...this.given.values()].map((each) => each.file_id).filter(Boolean)
  }

  get paths() {
    return [...this.given.keys()].map((name) => `attachments/${name}`)
  }

  get media() {
    return [...this.given.values()].filter((each) => each.file_id)
  }

  add(files) {
    const adding = this.send([...files]) // the list of an input is emptied with it
    this.adding = Promise.all([this.adding, adding])
    return adding
  }

  // Wait for the files that are being sent.
  async arrived() {
    await this.adding
  }

  async send(files) {
    for (const file of files) {
      const own = { name: file.name, size: file.size }
      this.given.set(file.name, own) // one of the same name takes its place
      this.draw()
      await tried(async () => {
        const options = { method: "POST", body: file, type: file.type || "application/octet-stream" }
        Object.assign(own, await (await page.server.ask(`/files?name=${encodeURIComponent(file.name)}`, options)).json())
      })
      if (!own.file_id && this.given.get(file.name) === own) this.given.delete(file.name)
      this.draw()
    }
    this.changed()
  }

  clear() {
    this.given.clear()
    this.draw()
  }

  draw() {
    renew(this.list, ...[...this.given].map(([name, { size, file_id }]) => make("li", {}, name, make("span", { class: "soft" }, ` ${file_id ? sized(size) : "is sent …"} `),
      button("×", () => {
        this.given.delete(name)
        this.draw()
        this.changed()
      }, { "aria-label": `remove ${name}`, class: "link" }))))
  }
}

// Files that are dropped on a place are taken; elsewhere the browser would open them.
export function takeDrops(place, take) {
  const isFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files")
  place.addEventListener("dragover", (event) => {
    if (!isFiles(event)) return
    event.preventDefault()
    place.classList.add("is-over")
  })
  place.addEventListener("dragleave", () => place.classList.remove("is-over"))
  place.addEventListener("drop", (event) => {
    if (!isFiles(event)) return
    event.preventDefault()
    event.stopPropagation()
    place.classList.remove("is-over")
    take(event.dataTransfer.files)
  })
}

// The images of a place that are in files of a run; what is no file of it, or too large, stays a path.
const fetched = new Map() // path of a file → its data
export async function fillPictures(runId, place) {
  const waiting = [...place.querySelectorAll("img[data-path]:not([src])")]
  if (!waiting.length) return
  const path = `/runs/${encodeURIComponent(runId)}/files`
  const { files } = await page.server.get(path).catch(() => ({ files: [] }))
  await Promise.all(waiting.map(async (image) => {
    const file = files.find((each) => each.path === image.dataset.path)
    if (!file || !IMAGES.test(file.media_type) || file.size > MOST_IMAGE || (page.server.isExported && !("data" in file))) return
    const at = `${path}/${file.file_id}`
    if (!fetched.has(at)) fetched.set(at, page.server.ask(at).then((answer) => answer.blob()).then(dataOf))
    const data = await fetched.get(at).catch(() => fetched.delete(at) && "")
    if (!data) return
    image.src = data
    image.hidden = false
  }))
}

// The files of a run in a place, each with a preview.
export async function filesView(runId, place) {
  const path = `/runs/${encodeURIComponent(runId)}/files`
  const found = await tried(() => page.server.get(path).catch((error) => {
    if (error.status === 404) return { files: [], none: error.message }
    throw error
  }))
  if (!found) return
  const shown = make("div", { class: "preview" })
  const blobOf = async (file) => (await page.server.ask(`${path}/${file.file_id}`)).blob()
  const isHere = (file) => !page.server.isExported || "data" in file
  const saver = (file) => button("Download", () => tried(async () => save(file.path.split("/").pop(), file.media_type, await blobOf(file))), { "aria-label": `download ${file.path}`, class: "small" })
  const preview = (file) => tried(async () => {
    shown.replaceChildren(make("h3", {}, file.path), ...(await previewOf(file, blobOf)))
    shown.scrollIntoView({ block: "nearest" })
  })
  const rows = found.files.map((file) => [make("td", {}, isHere(file) ? button(file.path, () => preview(file), { class: "link" }) : file.path), file.kind === "attachment" ? "given" : "written by the run",
    make("td", { class: "number" }, sized(file.size)), file.media_type,
    isHere(file) ? make("td", {}, saver(file)) : make("td", {}, "too large for this page", make("div", { class: "soft" }, "sha256 ", make("code", {}, file.sha256)))])
  place.replaceChildren(rows.length ? make("div", { class: "scroll" }, table(["file", "came", "size", "type", ""], rows))
    : make("section", { class: "empty" }, make("h2", {}, "This run has no files"),
      make("p", {}, found.none || "Files that are given to a run lie in its folder attachments; what its nodes and tools write beside it is listed here.")),
  ...(found.left_out ? [make("p", { class: "soft" }, `${found.left_out} more are not listed.`)] : []), shown)
  const first = found.files.find((file) => file.kind === "artifact" && isHere(file))
  if (first) preview(first)
}

async function previewOf(file, blobOf) {
  const isImage = IMAGES.test(file.media_type)
  if (file.media_type === "application/pdf") return [make("p", { class: "soft" }, "A PDF is not shown here: not all browsers have a viewer for it in a sandboxed frame, and outside of one a document could ask other servers. Download it.")]
  if (!isImage && !TEXTS.test(file.media_type) && !TEXTS.test(file.path)) return [make("p", { class: "soft" }, "There is no preview of this type: download it.")]
  if (isImage && file.size > MOST_IMAGE) return [make("p", { class: "soft" }, "It is too large for a preview: download it.")]
  const blob = await blobOf(file)
  if (isImage) return [make("img", { alt: file.path, src: await dataOf(blob) })]
  const text = await blob.slice(0, MOST_SHOWN).text()
  const rest = blob.size > MOST_SHOWN ? [make("p", { class: "soft" }, `The first ${sized(MOST_SHOWN)} of ${sized(blob.size)}.`)] : []
  if (/\.csv$/i.test(file.path)) return [csvTable(text), ...rest]
  if (/\.json$/i.test(file.path) && !rest.length) {
    try {
      return [block(JSON.parse(text))]
    } catch (error) {
      return [make("p", { class: "soft" }, `It is no JSON: ${error.message}`), block(text)]
    }
  }
  return [block(text), ...rest]
}

const dataOf = (blob) => new Promise((done, failed) => {
  const reader = new FileReader()
  reader.onload = () => done(reader.result)
  reader.onerror = () => failed(reader.error)
  reader.readAsDataURL(blob)
})

// The first rows of a table; cells may be quoted.
function csvTable(text) {
  const rows = [[]]
  for (const [, comma, , quoted, plain] of text.matchAll(/(^|,|\r?\n)("((?:[^"]|"")*)"|([^,\r\n]*))/g)) {
    if (comma && comma !== ",") rows.push([])
    if (rows.length > MOST_ROWS) break
    rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
  }
  const [head, ...body] = rows.filter((row) => row.length > 1 || row[0])
  return head ? make("div", { class: "scroll" }, table(head, body)) : block(text)
}
