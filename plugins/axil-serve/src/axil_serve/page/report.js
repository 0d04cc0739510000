// A run as a text in Markdown, and files that are saved from the page.
import { areMessages, make, money, seconds, shown } from "./dom.js"

export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }))
  make("a", { href: address, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(address), 1000)
}

// A value in a fence that is longer than any in it.
function fenced(value) {
  const text = areMessages(value) ? value.map((each) => `${each.role}: ${each.content}`).join("\n\n") : shown(value)
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}\n${text}\n${fence}\n`
}

// The input, each firing in order with what it sent and its calls, the failures and the output.
export function markdownOf(info, run) {
  const facts = [run.status, seconds(run.at), run.tokens ? `${run.tokens} tokens` : "", money(run.cost)].filter(Boolean).join(", ")
  const parts = [`# ${info.workflow} ${info.run_id}\n\n${facts}\n`]
  if (run.input !== null) parts.push("## Input\n", fenced(run.input))
  const firings = [...run.nodes.values()].flatMap((node) => run.firings(node).map((firing) => ({ node, ...firing })))
  for (const { node, step, activation, parts: own } of firings.sort((a, b) => (a.step ? a.step.number : Infinity) - (b.step ? b.step.number : Infinity))) {
    parts.push(`## ${step ? `${step.number}. ${step.activation}, ${seconds(step.at)}` : `${activation}, ${node.open.length ? "waiting" : "not ended"}`}\n`)
    for (const part of own) {
      if (part.kind === "asked") parts.push("Asked:\n", fenced(part.question.text))
      else if (part.kind === "prompt") parts.push(`Prompt of ${part.name}:\n`, fenced(run.messages(part).map((each) => `${each.role || ""}: ${each.content ?? `(${each.characters} characters, not kept)`}`).join("\n\n")))
      else parts.push(`${part.name}:\n`, fenced(Object.values(part.output || {})[0]))
    }
    for (const [name, payload] of step ? Object.entries(step.output || {}) : []) parts.push(`${name}:\n`, fenced(payload))
  }
  for (const { activation, error, place } of run.failures) parts.push(`## ${activation} failed\n`, fenced([error, place].filter(Boolean).join("\n")))
  if (!run.failures.length && run.error && run.status !== "paused") parts.push("## Error\n", fenced(run.error))
  if (run.output !== null && run.output !== undefined) parts.push("## Output\n", fenced(run.output))
  return parts.join("\n")
}
