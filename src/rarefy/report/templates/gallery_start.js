// Views, controls, pointer and keys; then the page starts.
const views = Array.from(document.querySelectorAll(".view"));
const buttons = Array.from(document.querySelectorAll("[data-show]"));
function show(name) {
  state.view = name;
  for (const view of views) view.hidden = view.dataset.view !== name;
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === name));
  if (name === "percentiles") makeRows();
  if (name === "picked") fillPicked();
  refresh();
}
function makeRows() {
  const rows = document.getElementById("percentile-rows");
  if (rows.children.length) return;
  for (const label of known.shown) {
    if (!atStop(label, 50).length) continue; // a class without scores
    const inner = [make("h2", { text: known.classes[label] }), make("ul", { class: "strip" })];
    const row = make("section", { class: "row", "data-c": label, hidden: !matches(label) }, ...inner);
    rows.append(row);
    watcher.observe(row);
  }
}
function sayStop() {
  const stop = known.stops[state.stop];
  const ends = { 0: "0: the lowest of each class", 100: "100: the highest of each class" };
  const text = ends[stop] || stop + ": " + stop + " % of the class score lower";
  document.getElementById("stop-said").textContent = text;
  document.getElementById("stop").setAttribute("aria-valuetext", text);
}
function filter() {
  let found = 0;
  for (const element of document.querySelectorAll("[data-c]")) {
    element.hidden = !matches(Number(element.dataset.c));
    if (element.classList.contains("card") && !element.hidden) found += 1;
  }
  tell(state.find ? found + " classes" : "");
  if (state.view === "picked") fillPicked();
  refresh();
}

function controls() {
  const measure = document.getElementById("measure"), stop = document.getElementById("stop"), find = document.getElementById("find");
  for (const [name, words] of known.measures) measure.append(make("option", { value: name, text: words }));
  measure.addEventListener("change", function () { state.measure = measure.value; refresh(); });
  stop.max = String(Math.max(0, known.stops.length - 1));
  state.stop = known.stops.includes(95) ? known.stops.indexOf(95) : known.stops.length - 1;
  stop.value = String(state.stop);
  stop.addEventListener("input", function () { state.stop = Number(stop.value); sayStop(); refresh(); });
  sayStop();
  find.addEventListener("input", function () { state.find = find.value.trim().toLowerCase(); filter(); });
  document.getElementById("zoom").addEventListener("change", function (event) {
    document.documentElement.style.setProperty("--zoom", event.target.value);
  });
  document.getElementById("paths").addEventListener("change", function (event) {
    state.paths = event.target.checked;
    refresh();
    if (state.open !== null) openSample(state.open);
  });
  for (const button of buttons) button.addEventListener("click", function () { show(button.dataset.show); });
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", function () { takeAlong(button.dataset.export); button.closest("details").open = false; });
  }
  document.getElementById("help-button").addEventListener("click", function () { document.getElementById("help").showModal(); });
}
function matrix() {
  const scale = document.querySelector(".switch");
  if (!scale) return;
  const most = document.querySelector("[data-most]"), map = document.getElementById("map");
  scale.hidden = false;
  scale.addEventListener("change", function () {
    for (const td of document.querySelectorAll(".matrix [data-text]")) {
      const style = td.getAttribute("style"), text = td.textContent;
      td.setAttribute("style", td.dataset.style);
      td.textContent = td.dataset.text;
      td.dataset.style = style;
      td.dataset.text = text;
    }
    if (map) [map.src, map.dataset.other] = [map.dataset.other, map.src];
    [most.textContent, most.dataset.most] = [most.dataset.most, most.textContent];
  });
  if (!map) return;
  const [order, ratios, squares] = known.covariance, size = order.length;
  map.addEventListener("pointermove", function (event) {
    const box = map.getBoundingClientRect();
    const row = Math.min(size - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * size)));
    const column = Math.min(size - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * size)));
    const a = Math.min(row, column), b = Math.max(row, column), ratio = ratios[a * size - a * (a - 1) / 2 + b - a];
    const raw = ratio === null ? null : Number((ratio * Math.sqrt(squares[a] * squares[b])).toPrecision(3));
    const pair = known.classes[order[row]] + " and " + known.classes[order[column]];
    document.getElementById("map-said").textContent = pair + ": " + said(ratio) + " normalised, " + said(raw) + " as it is";
  });
}

document.addEventListener("click", function (event) {
  const item = event.target.closest("[data-r]");
  if (!item) return;
  const place = Number(item.dataset.r);
  if (event.target.matches(".pick")) setPicked([place], event.target.checked);
  else if (event.target.closest(".open")) openSample(place, item.closest("#panel") ? null : event.target.closest(".open"));
});
// The next sample in the direction of an arrow: along the page, or in the line above or below.
function beside(item, key) {
  const area = item.closest("#panel") || item.closest(".view");
  const cells = Array.from(area.querySelectorAll(".cell")).filter(function (one) { return !one.closest("[hidden]"); });
  const at = cells.indexOf(item), step = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
  if (key === "ArrowLeft" || key === "ArrowRight") return cells[at + step];
  const from = item.getBoundingClientRect();
  let best = null, line = null;
  for (let turn = at + step; cells[turn]; turn += step) {
    const box = cells[turn].getBoundingClientRect();
    if (Math.abs(box.top - from.top) < 2 && line === null) continue;
    if (line !== null && Math.abs(box.top - line) > 2) break;
    line = box.top;
    if (!best || Math.abs(box.left - from.left) < Math.abs(best.getBoundingClientRect().left - from.left)) best = cells[turn];
  }
  return best;
}
function move(item, key) {
  let next = beside(item, key);
  if (!next) return;
  const place = next.dataset.r, holder = next.closest(".card, .row, .strip");
  if (!next.querySelector(".open")) { // not drawn yet: it was far from the screen
    const turn = Array.from(holder.querySelectorAll(".cell")).indexOf(next);
    fill(holder);
    next = holder.querySelectorAll(".cell")[turn] || holder.querySelector('[data-r="' + place + '"]');
  }
  next.querySelector(".open").focus();
  next.scrollIntoView({ block: "nearest" });
  if (!panel.hidden && !next.closest("#panel")) openSample(Number(next.dataset.r), next.querySelector(".open"));
}
document.addEventListener("keydown", function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  const find = document.getElementById("find");
  const typing = event.target.matches("input[type=search], input[type=range], select, textarea");
  const item = event.target.matches(".open") ? event.target.closest(".cell") : null;
  if (event.key === "Escape") { closeSample(); return; }
  if (typing) return;
  if (event.key === "?") { event.preventDefault(); document.getElementById("help").showModal(); }
  else if (event.key === "/" && !find.closest("label").hidden) { event.preventDefault(); find.focus(); }
  else if (item && event.key.startsWith("Arrow")) { event.preventDefault(); move(item, event.key); }
  else if (item && event.key === " ") { event.preventDefault(); setPicked([Number(item.dataset.r)], !isPicked(Number(item.dataset.r))); }
  else if (item && event.key === "Enter" && state.open === Number(item.dataset.r) && !panel.hidden) { event.preventDefault(); panel.focus(); }
});
document.addEventListener("keyup", function (event) { if (event.key === " " && event.target.matches(".open")) event.preventDefault(); });
// A link to a class leads there from every view; again a little later, when what lies above is drawn.
function lead() {
  const card = document.getElementById(location.hash.slice(1));
  if (!card || !card.classList.contains("card")) return;
  if (state.view !== "classes") show("classes");
  for (const wait of [0, 60, 250]) setTimeout(function () { card.scrollIntoView(); }, wait);
}
window.addEventListener("hashchange", lead);
for (const link of document.querySelectorAll(".jump a")) link.addEventListener("click", lead);

loadPicks();
controls();
matrix();
document.getElementById("bar").hidden = false;
const picked = document.getElementById("picked");
for (const element of document.querySelectorAll('.card, .strip[data-kind="mixed"]')) if (element !== picked) watcher.observe(element);
show("classes");
showPicks();
