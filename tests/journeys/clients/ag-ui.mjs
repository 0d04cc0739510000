// AG-UI's client.
import assert from "node:assert/strict"
import { HttpAgent } from "@ag-ui/client"

const agent = (name) => {
  const made = new HttpAgent({ url: `${process.env.ADDRESS}/ag-ui/${name}`, headers: { authorization: `Bearer ${process.env.TOKEN}` } })
  made.setMessages([{ id: "1", role: "user", content: "Send it." }])
  return made
}
const brief = await agent("brief").runAgent({ forwardedProps: { tone: "kind" }, context: [{ description: "who", value: "Ada" }] })
assert.deepEqual(brief.newMessages.map((each) => each.content), ["a text"])

const human = agent("human")
await human.runAgent()
const [interrupt] = human.pendingInterrupts
assert.match(interrupt.message, /^May this be sent\?/)
const { newMessages } = await human.runAgent({ resume: [{ interruptId: interrupt.id, status: "resolved", payload: "yes" }] })
assert.equal(newMessages.at(-1).content, "Sent.")
assert.equal(human.pendingInterrupts.length, 0)

const tools = [{ name: "f", description: "", parameters: {} }]
await assert.rejects(agent("brief").runAgent({ tools }), /400|tools/)
let failure = ""
await agent("broken").runAgent({}, { onRunErrorEvent: ({ event }) => { failure = event.message } }).catch((error) => { failure ||= error.message })
assert.match(failure, /broken|AX/)
