// The command line of MCP's inspector, at `axil mcp serve` over its standard streams.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"

const call = (...words) => JSON.parse(execFileSync(`${import.meta.dirname}/node_modules/.bin/mcp-inspector`,
  ["--cli", process.env.AXIL, "mcp", "serve", "human.yaml", "brief.yaml", "--journal", "journal-of-mcp", ...words], { encoding: "utf-8" }))
const { tools } = call("--method", "tools/list")
assert.ok(["brief", "human"].every((name) => tools.some((each) => each.name === name)))
const brief = call("--method", "tools/call", "--tool-name", "brief", "--tool-arg", "input=Ada")
assert.match(JSON.stringify(brief), /a text/)
const asked = JSON.stringify(call("--method", "tools/call", "--tool-name", "human", "--tool-arg", "input=Ada"))
assert.match(asked, /May this be sent\?/)
