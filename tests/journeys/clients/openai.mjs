// OpenAI's client in JavaScript.
import assert from "node:assert/strict"
import OpenAI from "openai"

const options = { baseURL: `${process.env.ADDRESS}/v1`, apiKey: process.env.TOKEN, maxRetries: 0 }
const client = new OpenAI(options)
const said = (content) => [{ role: "user", content }]

const models = []
for await (const each of await client.models.list()) models.push(each.id)
assert.deepEqual(models.sort(), ["brief", "broken", "human"])
assert.equal((await client.models.retrieve("brief")).id, "brief")

const whole = await client.chat.completions.create({ model: "brief", messages: said("Ada") })
assert.equal(whole.choices[0].message.content, "a text")
let words = ""
const chunks = await client.chat.completions.create({ model: "brief", messages: said("Ada"), stream: true })
for await (const chunk of chunks) words += chunk.choices[0]?.delta.content ?? ""
assert.equal(words, "a text")

const asked = await client.chat.completions.create({ model: "human", messages: said("Send it.") })
assert.match(asked.choices[0].message.content, /^May this be sent\?/)
const own = { model: "human", messages: said("yes"), metadata: { run_id: asked.id } }
assert.equal((await client.chat.completions.create(own)).choices[0].message.content, "Sent.")

const question = await client.responses.create({ model: "human", input: "Send it." })
assert.match(question.output_text, /^May this be sent\?/)
const answered = await client.responses.create({ model: "human", input: "no", previous_response_id: question.id })
assert.equal(answered.output_text, "Not sent.")
assert.equal((await client.responses.retrieve(answered.id)).output_text, "Not sent.")
const kinds = []
for await (const event of await client.responses.create({ model: "brief", input: "Ada", stream: true })) kinds.push(event.type)
assert.equal(kinds.at(0), "response.created")
assert.equal(kinds.at(-1), "response.completed")
const talk = await client.conversations.create({})
await client.responses.create({ model: "brief", input: "Ada", conversation: talk.id })
const items = []
for await (const each of await client.conversations.items.list(talk.id)) items.push(each.role)
assert.deepEqual(items.sort(), ["assistant", "user"])

const file = await client.files.create({ file: new File(["one"], "a.txt"), purpose: "user_data" })
assert.equal(await (await client.files.content(file.id)).text(), "one")
assert.equal((await client.files.delete(file.id)).deleted, true)

for (const refused of [{ n: 2 }, { temperature: 0 }, { tools: [{ type: "function", function: { name: "f", parameters: {} } }] }]) {
  await assert.rejects(client.chat.completions.create({ model: "brief", messages: said("x"), ...refused }),
    (error) => error.status === 400 && error.param === Object.keys(refused)[0])
}
await assert.rejects(client.chat.completions.create({ model: "broken", messages: said("x") }), { status: 500 })
await assert.rejects(client.chat.completions.create({ model: "none", messages: said("x") }), OpenAI.NotFoundError)
await assert.rejects(new OpenAI({ ...options, apiKey: "another" }).models.list(), OpenAI.AuthenticationError)
