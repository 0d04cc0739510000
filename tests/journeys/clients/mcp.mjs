// MCP's client in JavaScript, at `axil serve`: tools, a question without elicitation, a failing run.
import assert from "node:assert/strict"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"

const opened = async (token) => {
  const client = new Client({ name: "journey", version: "1" })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.ADDRESS}/mcp`), { requestInit }))
  return client
}
const said = (result) => result.content.map((each) => each.text).join("")

const client = await opened(process.env.TOKEN)
const { tools } = await client.listTools()
assert.deepEqual(tools.map((each) => each.name).sort(), ["answer_run", "brief", "broken", "human"])
const brief = await client.callTool({ name: "brief", arguments: { input: "Ada" } })
assert.match(said(brief), /a text/)

const asked = await client.callTool({ name: "human", arguments: { input: "Send it." } })
assert.match(said(asked), /May this be sent\?/)
const answered = await client.callTool({ name: "answer_run", arguments: { run_id: asked._meta["axil/run_id"], answer: "yes" } })
assert.match(said(answered), /Sent\./)
const again = await client.callTool({ name: "answer_run", arguments: { run_id: asked._meta["axil/run_id"], answer: "yes" } })
assert.match(said(again), /AX937/)

const failed = await client.callTool({ name: "broken", arguments: { input: "x" } })
assert.equal(failed.isError, true)
assert.match(said(failed), /broken|AX/)
assert.equal((await client.callTool({ name: "brief", arguments: { wrong: 1 } })).isError, true)
await assert.rejects(client.callTool({ name: "none", arguments: {} }), /no tool/)
await assert.rejects(opened("another"), /401|AX961/)
await client.close()
