// A question to a person, with what will happen.
import { block, button, callShown, details, legible, make, parsed } from "./dom.js"
import { may, once, problem } from "./shell.js"

// Approve a call with other arguments.
function changedCall(given, send) {
  const place = make("span", { class: "bar" })
  place.append(button("Change the arguments", () => {
    const edited = make("textarea", { rows: 4, "aria-label": "arguments, as JSON" })
    edited.value = JSON.stringify(given, null, 2)
    place.replaceChildren(edited, button("Approve these", () => {
      try {
        send({ answer: "edit", arguments: JSON.parse(edited.value) })
      } catch (error) {
        problem(error)
      }
    }))
    edited.focus()
  }))
  return place
}

// The text of a question; the marks of its inputs in words.
const questionText = (text) => text.replace(/^=== INPUT FROM (.+) \(\w+\) ===\n+/gm, "$1 said:\n")

// A question with what will happen: of a tool its arguments, what it does and what it changes.
export function questionCard(question, answer) {
  const send = once(answer)
  const data = question.data || {}, isTool = question.kind === "tool_approval" && data.tool
  const card = make("section", { class: "card", "aria-label": question.label || "question" }, make("p", { class: "soft" }, `${question.by} asks`),
    data.description ? make("p", {}, make("strong", {}, legible(String(data.description)))) : null)
  if (isTool) {
    card.append(make("h2", {}, `May the tool ${legible(String(data.tool))} be called?`))
    for (const name of ["does", "changes"]) if (data[name]) card.append(make("p", {}, make("span", { class: "soft" }, `${name === "does" ? "What it does" : "What it changes"}: `), legible(String(data[name]))))
    card.append(make("p", { class: "soft" }, "It is called with:"), block(callShown(question)), details("as it was asked", make("p", { class: "lines" }, legible(question.text))))
  } else card.append(make("p", { class: "lines" }, questionText(legible(question.text))))
  const rest = Object.fromEntries(Object.entries(data).filter(([name]) => name !== "description" && !(isTool && ["tool", "arguments", "does", "changes"].includes(name))))
  if (Object.keys(rest).length) card.append(isTool ? details("more", block(legible(rest))) : block(legible(rest)))
  if (question.due) {
    const then = question.default === null || question.default === undefined ? "the node fails" : `the answer is ${JSON.stringify(question.default)}`
    card.append(make("p", { class: "soft" }, `Without an answer until ${new Date(question.due * 1000).toLocaleString()} ${then}.`))
  }
  if (!may("answer")) return card
  const act = (text, value, kind = "") => button(text, () => send(value), { class: kind })
  if (question.kind === "approval" || question.kind === "tool_approval") {
    card.append(make("div", { class: "bar" }, act("Approve", true, "primary"), act("Refuse", false), isTool ? changedCall(data.arguments || {}, send) : null))
  }
  else if ((question.options || []).length) card.append(make("div", { class: "bar" }, question.options.map((option) => button(legible(option), () => send(option)))))
  else {
    const field = make("input", { type: "text", "aria-label": "answer" })
    card.append(make("form", { class: "bar", onsubmit: (event) => {
      event.preventDefault()
      send(question.kind === "form" ? parsed(field.value) : field.value)
    } }, field, make("button", { class: "primary" }, "Answer")))
  }
  return card
}

// Go to the first thing by which a question is answered.
export function answerFirst(place, event) {
  const first = place.querySelector(".card :is(input, .primary, .bar button)")
  if (!first) return
  first.focus()
  event.preventDefault()
}
