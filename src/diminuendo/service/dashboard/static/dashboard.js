"use strict"
// Charts from numbers in the page, buttons that copy, a button that stops the refreshing.
const charts = new Map()
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const short = new Intl.NumberFormat("en", { notation: "compact" })

function plot(box, data) {
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--rule"), width: 1 }, ticks: { show: false }, font: "13px system-ui" }
  const paths = data.ceiling ? uPlot.paths.stepped({ align: 1 }) : undefined
  const series = [{}, { stroke: colour("--mark"), width: 2, fill: colour("--tint"), paths, points: { show: false } }]
  if (data.ceiling) series.push({ stroke: colour("--soft"), width: 1, dash: [4, 4], points: { show: false } })
  const values = (_, all) => all.map(one => short.format(one))
  const times = (_, all, at, room, step) => all.map(one => new Date(1000 * one).toLocaleString([], step < 86400
    ? { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined, hourCycle: "h23" }
    : { month: "short", day: "numeric" }))
  return new uPlot({
    width: box.clientWidth, height: 200, legend: { show: false }, cursor: { show: false }, series,
    scales: { y: { range: (_, low, high) => [0, 1.08 * (high || 1)] } },
    axes: [{ ...axis, space: 80, values: times }, { ...axis, size: 52, values }],
  }, [], box)
}

function draw(again) {
  for (const [box, chart] of charts) if (again || !box.isConnected) chart.destroy(), charts.delete(box)
  for (const box of document.querySelectorAll("[data-chart]")) {
    const source = document.getElementById(box.dataset.chart)
    if (!source) continue
    const data = JSON.parse(source.value)
    if (!charts.has(box)) charts.set(box, plot(box, data))
    const chart = charts.get(box)
    chart.setData(data.ceiling ? [data.x, data.y, data.x.map(() => data.ceiling)] : [data.x, data.y])
    if (chart.width !== box.clientWidth) chart.setSize({ width: box.clientWidth, height: 200 })
  }
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy), label = button.textContent
  try {
    await navigator.clipboard.writeText(source.textContent)
    button.textContent = "Copied"
    setTimeout(() => { button.textContent = label }, 1500)
  } catch { // not allowed here: leave it selected
    getSelection().selectAllChildren(source)
  }
}

const pause = document.getElementById("pause")
function paused(is) {
  sessionStorage.setItem("paused", is)
  pause.setAttribute("aria-pressed", is)
  pause.textContent = is ? "Resume" : "Pause"
}
const key = document.getElementById("key")
function signInByLink() { // browsers do not send what follows #: this form alone does
  if (!key || location.hash.length < 2) return
  key.value = decodeURIComponent(location.hash.slice(1))
  history.replaceState(null, "", "/login")
  key.form.submit()
}
signInByLink()
addEventListener("hashchange", signInByLink) // the link was opened where the login page already was
const lost = is => document.body.classList.toggle("off", is)

if (pause) {
  paused(sessionStorage.getItem("paused") === "true")
  pause.addEventListener("click", () => paused(pause.getAttribute("aria-pressed") !== "true"))
}
document.addEventListener("click", event => {
  const button = event.target.closest("[data-copy]")
  if (button) copy(button)
})
document.addEventListener("htmx:before:request", event => {
  if (document.hidden || pause?.getAttribute("aria-pressed") === "true") event.preventDefault()
})
document.addEventListener("htmx:error", () => lost(true))
document.addEventListener("htmx:after:request", event => lost(event.detail.ctx.response.status >= 400))
document.addEventListener("htmx:after:swap", () => draw())
addEventListener("resize", () => draw())
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true))
draw()
