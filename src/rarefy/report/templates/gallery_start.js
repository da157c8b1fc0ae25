// Views, controls, pointer and keys; then the page starts.
const views = Array.from(document.querySelectorAll(".view"));
const buttons = Array.from(document.querySelectorAll("[data-show]"));
function show(name) {
  state.view = name;
  for (const view of views) view.hidden = view.dataset.view !== name;
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === name));
  if (name === "decisions") fillDecided();
  if (name === "map") drawMap();
  refresh();
}
function filter() {
  let found = 0;
  for (const element of document.querySelectorAll("[data-c]")) {
    element.hidden = !matches(Number(element.dataset.c));
    if (element.classList.contains("card") && !element.hidden) found += 1;
  }
  tell(state.find ? found + " classes" : "");
  if (state.view === "decisions") fillDecided();
  if (state.view === "map") drawMap();
  refresh();
}
function controls() {
  const measure = document.getElementById("measure"), find = document.getElementById("find");
  for (const [name, words] of known.measures) measure.append(make("option", { value: name, text: words }));
  measure.addEventListener("change", function () { state.measure = measure.value; refresh(); });
  find.addEventListener("input", function () { state.find = find.value.trim().toLowerCase(); filter(); });
  for (const button of buttons) button.addEventListener("click", function () { show(button.dataset.show); });
  document.getElementById("export").addEventListener("click", takeAlong);
  document.getElementById("clear").addEventListener("click", function () {
    if (picks.size && window.confirm("Clear " + picks.size + " decisions?")) { picks.clear(); keepPicks(); tell("decisions cleared"); }
  });
  for (const list of document.querySelectorAll('[data-view="triage"] .strip')) list.before(bulk(list));
}

document.addEventListener("click", function (event) {
  const button = event.target.closest(".open"), item = button && button.closest("[data-r]");
  if (item) openSample(Number(item.dataset.r), item.closest("#panel") ? null : button);
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
// Decide about the opened sample, or the one that has the focus, and go on to the next.
function decideHere(what) {
  const held = document.activeElement.closest(".cell"), from = opener && opener.isConnected ? opener.closest(".cell") : null;
  const place = panel.hidden ? (held ? Number(held.dataset.r) : null) : state.open;
  if (place === null) { tell("open a sample first, or move to one with the arrow keys"); return; }
  const select = panel.hidden ? null : document.getElementById("to");
  const label = select ? select.value : suggestion(place);
  if (what === "relabel" && !label) {
    openSample(place, held ? held.querySelector(".open") : null);
    document.getElementById("to").focus();
    tell("no label is suggested: choose one, then Enter");
    return;
  }
  decide(place, what, label);
  keepPicks();
  let item = panel.hidden ? held : from; // (a list of decisions is drawn anew)
  if (!item || !item.isConnected) item = document.querySelector('.view:not([hidden]) .cell[data-r="' + place + '"]');
  tell(fileName(place) + ": " + (what === "relabel" ? "relabel to " + label : what || "undecided"));
  if (what && item && Number(item.dataset.r) === place) move(item, "ArrowRight");
}
const keys = { k: "keep", d: "drop", r: "relabel", u: "" };
document.addEventListener("keydown", function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const find = document.getElementById("find"), key = event.key.toLowerCase();
  if (event.key === "Escape") { closeSample(); return; }
  if (event.target.matches("input[type=search]")) return;
  if (event.target.matches("select")) { // letters choose in it
    if (event.target.id === "to" && event.key === "Enter") { event.preventDefault(); decideHere("relabel"); }
    return;
  }
  const item = event.target.matches(".open") ? event.target.closest(".cell") : null;
  if (key in keys) { event.preventDefault(); decideHere(keys[key]); }
  else if (key === "e") { event.preventDefault(); takeAlong(); }
  else if (event.key === "/" && !find.closest("label").hidden) { event.preventDefault(); find.focus(); }
  else if (item && event.key.startsWith("Arrow")) { event.preventDefault(); move(item, event.key); }
  else if (item && event.key === "Enter" && state.open === Number(item.dataset.r) && !panel.hidden) { event.preventDefault(); panel.focus(); }
});
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
startMap();
document.getElementById("bar").hidden = false;
const own = ["decided", "chosen"]; // filled when they are asked for
for (const element of document.querySelectorAll('.card, .strip[data-kind="mixed"]')) if (!own.includes(element.id)) watcher.observe(element);
show(document.querySelector('[data-view="triage"]') ? "triage" : "classes");
showPicks();
