// Evaluations that the journal keeps: the cases of a dataset with their scores, and two versions side by side.
import { ago, block, button, details, make, money, renew, seconds, shown, since, table } from "./dom.js"
import { empty, page, show, tried } from "./shell.js"

const RESOURCES = { seconds, money: (value) => money(value) || "–", tokens: (value) => String(Math.round(value)) }
const mean = (values) => values.reduce((all, each) => all + each, 0) / values.length
const percent = (value) => `${Math.round(value * 100)} %`

const marked = new Set() // it outlives a list that is drawn again

export async function listEvaluations(isCurrent) {
  const { runs } = await page.server.get("/runs?workflow=evaluation&limit=100")
  const all = await Promise.all(runs.map(async (run) => ({ run, ...(run.status === "done" ? await read(run.run_id) : {}) })))
  if (!isCurrent()) return
  const there = new Set(all.filter(({ report }) => report).map(({ run }) => run.run_id))
  for (const id of marked) if (!there.has(id)) marked.delete(id)
  const side = button("Compare the marked", () => (location.hash = `evaluation=${[...marked].map(encodeURIComponent).join(",")}`), { disabled: marked.size !== 2 })
  const given = make("input", { type: "file", multiple: true, accept: ".json", class: "quiet", id: "reports", "aria-label": "reports", onchange: () => tried(async () => {
    page.reports = await Promise.all([...given.files].slice(0, 2).map(async (file) => checked(JSON.parse(await file.text()), file.name)))
    location.hash = "evaluation=files"
  }) })
  const open = button("Open reports …", () => given.click(), { title: "one or two files of axil eval run --out FILE.json" })
  const rows = all.map(({ run, report }) => {
    const box = make("input", { type: "checkbox", "aria-label": `mark ${run.run_id}`, disabled: !report, checked: marked.has(run.run_id), onchange: () => {
      if (!marked.delete(run.run_id)) marked.add(run.run_id)
      side.disabled = marked.size !== 2
    } })
    const names = report ? Object.keys(report.trials) : []
    return [box, make("td", {}, make("a", { href: `#${report ? "evaluation" : "run"}=${encodeURIComponent(run.run_id)}` }, run.run_id)), report ? report.dataset : "", report ? report.target : "",
      report ? make("td", {}, passed(report), " of ", names.length, " pass ", make("meter", { value: passed(report), max: names.length || 1, "aria-label": "cases that pass" }))
        : make("td", {}, make("span", { class: `status is-${run.status}` }, run.status)),
      make("td", {}, report ? scorersOf(report).map((name) => `${name} ${percent(mean(valuesOf(report, name)))}`).join(", ") : ""), make("td", { class: "number" }, report ? money(report.spent) : ""), make("td", { title: ago(run.touched) }, since(run.touched))]
  })
  show(make("h1", {}, "Evaluations"), make("div", { class: "bar" }, side, given, open),
    rows.length ? make("div", { class: "scroll" }, table(["", "evaluation", "dataset", "version", "cases", "scores", "spent", "when"], rows))
      : empty("No evaluations yet", make("p", {}, "An evaluation tries a workflow on the cases of a dataset and scores what comes of each. Kept in this journal it stands here:"),
        make("pre", { tabindex: 0 }, "axil eval run flow.yaml cases.yaml --run-id first --journal .axil"),
        make("p", {}, "Change the workflow, evaluate it under another id, mark both, and compare. A report in a file (", make("code", {}, "--out report.json"), ") opens with the button above.")))
}

const checked = (report, name) => {
  if (!report || report.axil_evals !== 1) throw new Error(`${name} is no report of an evaluation: axil eval run --out writes one.`)
  return { report, name, expected: {}, isFile: true }
}

// The report of a kept evaluation, and what its cases expect.
async function read(runId) {
  const { input, output } = await page.server.get(`/runs/${encodeURIComponent(runId)}`)
  const report = output && output.report
  if (!report || report.axil_evals !== 1) return {}
  const cases = (input && input.dataset && input.dataset.cases) || []
  return { report, name: runId, expected: Object.fromEntries(cases.filter((each) => "expected" in each).map((each) => [each.name, each.expected])) }
}

const scorersOf = (report) => [...new Set(Object.values(report.trials).flat().flatMap(({ scores }) => Object.keys(scores)))]
const valuesOf = (report, scorer) => Object.values(report.trials).map((trials) => trials.filter(({ scores }) => scorer in scores).map(({ scores }) => scores[scorer].value)).filter((each) => each.length).map(mean)
const passes = (trials) => trials.length > 0 && trials.every(({ trial, scores }) => trial.status === "done" && Object.values(scores).every((score) => score.passed))
const passed = (report) => Object.values(report.trials).filter(passes).length

// One evaluation as a table of its cases, or two of them side by side.
export async function evaluation(ids, isCurrent) {
  const all = ids[0] === "files" ? page.reports || [] : (await Promise.all(ids.slice(0, 2).map(read))).filter(({ report }) => report)
  const verdict = all.length === 2 ? await compared(all) : null
  if (!isCurrent()) return
  if (!all.length) return show(make("h1", {}, "Evaluation"), empty("There is no report", make("p", {}, "The evaluation has not ended, or the files have to be opened again: ", make("a", { href: "#evaluations" }, "evaluations"))))
  const names = [...new Set(all.flatMap(({ report }) => Object.keys(report.trials)))]
  const scorers = [...new Set(all.flatMap(({ report }) => scorersOf(report)))]
  const expected = Object.assign({}, ...all.map((each) => each.expected))
  const isEqual = (name) => all.length === 2 && passes(all[0].report.trials[name] || []) === passes(all[1].report.trials[name] || []) && outputsOf(all[0], name) === outputsOf(all[1], name)
  const only = make("input", { type: "checkbox", id: "only", onchange: () => draw() })
  const place = make("div", { class: "scroll sides cases", role: "region", tabindex: 0, "aria-label": "cases" })
  const draw = () => renew(place, table(["case", "input", "expected", ...all.map(({ name }) => name)], names.filter((name) => !only.checked || (all.length === 2 ? !isEqual(name) : !passes(all[0].report.trials[name] || []))).map((name) => [
    make("th", { scope: "row" }, name), make("td", {}, short(unwrapped(all.map(({ report }) => report.inputs[name]).find((each) => each !== undefined)))), make("td", {}, name in expected ? short(expected[name]) : "–"),
    ...all.map(({ report }) => make("td", {}, cell(report.trials[name] || [], scorers))),
  ])))
  draw()
  show(make("p", {}, make("a", { href: "#evaluations" }, "← evaluations")), make("h1", {}, all.length === 2 ? "Two versions side by side" : `Evaluation ${all[0].name}`),
    make("p", { class: "soft" }, all.map(({ report, name }) => `${name}: ${report.target} on ${report.dataset}, ${passed(report)} of ${Object.keys(report.trials).length} cases pass${report.skipped ? `, ${report.skipped} trials were not made` : ""}`).join(" · ")),
    verdict || measures(all, scorers), make("div", { class: "bar" }, make("label", {}, only, all.length === 2 ? " only cases that differ" : " only cases that fail")), place)
}

const outputsOf = ({ report }, name) => JSON.stringify((report.trials[name] || []).map(({ trial }) => trial.output))
const short = (value) => (shown(value).length > 160 ? details(`${shown(value).slice(0, 80)} …`, block(value)) : block(value))

function cell(trials, scorers) {
  if (!trials.length) return make("span", { class: "soft" }, "not run")
  return trials.map(({ trial, scores }) => [make("p", {}, make("span", { class: `status is-${passes([{ trial, scores }]) ? "done" : "failed"}` }, passes([{ trial, scores }]) ? "passes" : "fails"), " ",
    scorers.filter((name) => name in scores).map((name) => make("span", { class: scores[name].passed ? "score" : "score is-failed", title: scores[name].reason }, `${name} ${percent(scores[name].value)}`)),
    make("span", { class: "soft" }, [seconds(trial.seconds), money(trial.cost)].filter(Boolean).join(" · "))),
  trial.error ? make("p", { class: "is-failed lines" }, trial.error) : short(unwrapped(trial.output)),
  Object.entries(scores).filter(([, score]) => !score.passed && score.reason).map(([name, { reason }]) => make("p", { class: "soft" }, `${name}: ${reason}`))])
}

const unwrapped = (output) => (output && typeof output === "object" && !Array.isArray(output) && Object.keys(output).length === 1 ? Object.values(output)[0] : output)

const wide = (label, inside) => make("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, inside)

function measures(all, scorers) {
  return wide("scores", table(["scorer", ...all.map(({ name }) => name)], scorers.map((name) => [make("th", { scope: "row" }, name), ...all.map(({ report }) => {
    const values = valuesOf(report, name)
    return make("td", {}, values.length ? [percent(mean(values)), " ", make("meter", { value: mean(values), max: 1, "aria-label": `mean of ${name}` })] : "–")
  })])))
}

// What the second version does better or worse, and what is chance: as `axil eval compare` says it.
async function compared(all) {
  const asked = all.map(({ name }) => encodeURIComponent(name)), path = "/evaluations/compare"
  const answer = all.some(({ isFile }) => isFile) ? page.server.post(path, { first: all[0].report, second: all[1].report })
    : page.server.get(`${path}?first=${asked[0]}&second=${asked[1]}`)
  const found = await answer.catch((error) => ({ none: `${error.message} So the means are shown: axil eval compare says what is chance.` }))
  if (found.none) return make("div", {}, measures(all, [...new Set(all.flatMap(({ report }) => scorersOf(report)))]), make("p", { class: "soft" }, found.none))
  const says = (each, value) => (RESOURCES[each.measure] || percent)(value)
  return make("div", {}, wide("differences", table(["measure", all[0].name, all[1].name, "second is", "chance", "cases better", "worse"], found.changes.map((each) => [make("th", { scope: "row" }, each.measure),
    make("td", { class: "number" }, says(each, each.first)), make("td", { class: "number" }, says(each, each.second)),
    make("td", { class: `is-${{ better: "done", worse: "failed" }[each.verdict] || "none"}` }, each.verdict), make("td", { class: "number" }, each.chance.toFixed(3)), each.better.length || "–", each.worse.length ? each.worse.join(", ") : "–"]))),
  found.notes.map((note) => make("p", { class: "notice" }, note)))
}
