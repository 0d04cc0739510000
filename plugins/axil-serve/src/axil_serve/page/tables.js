// Tables of what nodes used, and of the fields of states.
import { block, button, difference, make, money, seconds, table } from "./dom.js"

const SHOWN_COSTS = 200

// A table of what each node used, the largest first; each row has a bar.
export function costTable(found, choose) {
  const most = (name) => Math.max(0, ...found.map((each) => each[name]))
  const by = most("cost") ? "cost" : most("tokens") ? "tokens" : "time"
  const largest = most(by) || 1
  const number = (text) => make("td", { class: "number" }, text)
  const sorted = [...found].sort((a, b) => b[by] - a[by])
  const rows = sorted.slice(0, SHOWN_COSTS).map((each) => [
    make("td", {}, choose ? button(each.name, () => choose(each), { class: "link" }) : each.name),
    number(each.isPartial ? `${each.times} kept` : each.times || ""), number(each.tokens || ""), number(money(each.cost)), number(each.time ? seconds(each.time) : ""),
    make("td", {}, make("meter", { value: each[by], max: largest, "aria-label": `${by} of ${each.name}` })),
  ])
  const more = sorted.length - rows.length
  return make("div", {}, table(["node", "times", "tokens", "money", "time", `part of the ${by}`], rows),
    more > 0 ? make("p", { class: "soft" }, `${more} more nodes, which used less, are not shown.`) : null)
}

// The fields of two states: those that differ as differences, the others alone.
export function stateTable(now, before, word = "changed") {
  const names = [...new Set([...Object.keys(before || {}), ...Object.keys(now)])].filter((name) => !name.startsWith("@"))
  if (!names.length) return make("p", { class: "soft" }, "The state has no fields.")
  return make("table", {}, make("tbody", {}, names.map((name) => {
    const changed = before ? difference(before[name], now[name]) : null
    return make("tr", { class: changed ? "changed" : "" }, make("th", { scope: "row" }, name, changed ? ` (${word})` : ""),
      make("td", {}, changed || block(now[name])))
  })))
}

