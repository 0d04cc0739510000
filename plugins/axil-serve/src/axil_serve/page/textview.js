// The text of a file.
import { make } from "./dom.js"

const LINE = 20

// A text with the numbers of its lines, and marks on those in which something was found.
export class TextView {
  constructor(changed) {
    this.area = make("textarea", { class: "code-text", spellcheck: "false", wrap: "off", "aria-label": "text of the file",
      autocapitalize: "off", autocomplete: "off" })
    this.numbers = make("pre", { class: "code-numbers", "aria-hidden": "true" })
    this.marks = make("div", { class: "code-marks", "aria-hidden": "true" })
    this.place = make("div", { class: "code" }, this.marks, this.numbers, this.area)
    this.area.addEventListener("input", () => changed(this.area.value))
    this.area.addEventListener("scroll", () => this.scrolled())
    this.area.addEventListener("keydown", (event) => { // Escape, then Tab leaves the text
      if (event.key === "Escape") this.isLeaving = true
      else if (event.key === "Tab" && !event.shiftKey && !this.isLeaving) {
        event.preventDefault()
        this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end")
        changed(this.area.value)
      } else if (event.key !== "Tab") this.isLeaving = false
    })
  }

  get text() {
    return this.area.value
  }

  set text(text) {
    if (this.area.value !== text) {
      const { scrollTop, scrollLeft, selectionStart, selectionEnd, value } = this.area, grown = text.length - value.length
      let same = 0
      while (same < text.length && text[same] === value[same]) same += 1
      // the caret stays at its letters: what was changed lies before it or behind it
      const moved = (at) => (at <= same ? at : Math.max(same, at + grown))
      this.area.value = text
      this.area.setSelectionRange(moved(selectionStart), moved(selectionEnd))
      Object.assign(this.area, { scrollTop, scrollLeft })
    }
    this.counted()
  }

  counted() {
    const count = this.area.value.split("\n").length
    if (count === this.count) return
    this.count = count
    this.numbers.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n")
    this.scrolled()
  }

  scrolled() {
    this.numbers.scrollTop = this.area.scrollTop
    this.marks.style.transform = `translateY(${-this.area.scrollTop}px)`
  }

  mark(problems) {
    this.marks.replaceChildren(...problems.filter((each) => each.line).map((each) => {
      const mark = make("div", { class: `mark is-${each.severity}` })
      mark.style.top = `${(each.line - 1) * LINE + 8}px`
      return mark
    }))
  }

  goTo(line, isFocused = true) {
    const lines = this.area.value.split("\n"), start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0)
    if (isFocused) {
      this.area.focus()
      this.area.setSelectionRange(start, start + (lines[line - 1] || "").length)
    }
    this.area.scrollTop = Math.max(0, (line - 5) * LINE)
  }
}
