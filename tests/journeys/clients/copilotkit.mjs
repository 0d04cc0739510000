// CopilotKit's runtime, which stands between its front ends and an agent of AG-UI.
import assert from "node:assert/strict"
import { HttpAgent } from "@ag-ui/client"
import { CopilotRuntime, createCopilotRuntimeHandler } from "@copilotkit/runtime/v2"

const headers = { authorization: `Bearer ${process.env.TOKEN}` }
const agents = Object.fromEntries(["brief", "human", "broken"].map((name) => [name, new HttpAgent({ url: `${process.env.ADDRESS}/ag-ui/${name}`, headers })]))
const handle = createCopilotRuntimeHandler({ runtime: new CopilotRuntime({ agents }), basePath: "/api" })

const run = async (name, threadId, given = {}) => {
  const body = { threadId, runId: crypto.randomUUID(), state: {}, tools: [], context: [], forwardedProps: {},
    messages: [{ id: "1", role: "user", content: "Send it." }], ...given }
  const answer = await handle(new Request(`http://localhost/api/agent/${name}/run`, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }))
  assert.equal(answer.status, 200)
  return (await answer.text()).split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)))
}
const textOf = (events) => events.filter((each) => each.type === "TEXT_MESSAGE_CONTENT").map((each) => each.delta).join("")

assert.equal(textOf(await run("brief", "t1")), "a text")
const asked = (await run("human", "t2")).at(-1)
assert.equal(asked.outcome.type, "interrupt")
const [interrupt] = asked.outcome.interrupts
assert.match(interrupt.message, /^May this be sent\?/)
const resume = [{ interruptId: interrupt.id, status: "resolved", payload: "yes" }]
assert.equal(textOf(await run("human", "t2", { resume })), "Sent.")
const failed = await run("broken", "t3")
assert.equal(failed.at(-1).type, "RUN_ERROR")
process.exit(0) // its timers go on
