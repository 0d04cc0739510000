// A2A's client in JavaScript, by both of its ways that the server has.
import assert from "node:assert/strict"
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client"

const INPUT_REQUIRED = 6, COMPLETED = 3
const fetchImpl = (url, given = {}) => fetch(url, { ...given, headers: { ...Object.fromEntries(new Headers(given.headers)), authorization: `Bearer ${process.env.TOKEN}` } })
const says = (text, taskId = "") => ({ tenant: "", metadata: {}, configuration: undefined,
  message: { messageId: crypto.randomUUID(), contextId: "", taskId, role: 1, metadata: undefined, extensions: [], referenceTaskIds: [],
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }] } })
for (const Transport of [JsonRpcTransportFactory, RestTransportFactory]) {
  const own = { transports: [new Transport({ fetchImpl })], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) }
  const client = await new ClientFactory({ ...ClientFactoryOptions.default, ...own }).createFromUrl(`${process.env.ADDRESS}/a2a/human/`)
  const asked = await client.sendMessage(says("Send it."))
  const task = asked.payload?.value ?? asked
  assert.equal(task.status.state, INPUT_REQUIRED)
  assert.match(task.status.message.parts[0].content.value, /^May this be sent\?/)
  let last
  for await (const event of client.sendMessageStream(says("yes", task.id))) last = event
  assert.ok(last)
  const ended = await client.getTask({ tenant: "", id: task.id })
  assert.equal(ended.status.state, COMPLETED)
  assert.match(JSON.stringify(ended.artifacts), /Sent\./)
}
