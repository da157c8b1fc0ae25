// Decisions: kept by the browser under the data's fingerprint, exported as one file for rarefy clean.
// Each carries its own record, so that one about a sample that a later page does not show is not lost.
const drawer = "rarefy-picks-" + known.fingerprint;
const placeOf = new Map(known.id.map(function (id, place) { return [id, place]; }));
let picks = new Map();

function record(place, decision, label) {
  const word = coded("triage", place), rule = coded("rule", place);
  return {
    id: known.id[place], index: known.index[place], name: known.name[place], label: className(place),
    decision: decision, new_label: decision === "relabel" ? label : "", why: word ? word + (rule ? ": " + rule : "") : "",
  };
}
function loadPicks() {
  try {
    const kept = JSON.parse(localStorage.getItem(drawer) || "[]");
    picks = new Map(kept.filter(function (row) { return row.decision; }).map(function (row) { return [row.id, row]; }));
  } catch (error) { picks = new Map(); } // a browser may keep nothing for local files
}
function decisionOf(place) { return picks.get(known.id[place]); }
// Nothing for undecided; a label that a sample has already is no change.
function decide(place, decision, label) {
  if (!decision) picks.delete(known.id[place]);
  else picks.set(known.id[place], record(place, decision === "relabel" && label === className(place) ? "keep" : decision, label));
}
function decideAll(chosen, decision) {
  const some = chosen.filter(function (place) { return decision !== "relabel" || suggestion(place); });
  for (const place of some) decide(place, decision, suggestion(place));
  keepPicks();
  tell(some.length + " samples: " + (decision || "undecided"));
}
function keepPicks() {
  try { localStorage.setItem(drawer, JSON.stringify(Array.from(picks.values()))); } catch (error) {
    tell("decisions are lost when this page closes: export them");
  }
  showPicks();
}
function showDecision(item) {
  const pick = decisionOf(Number(item.dataset.r)), line = item.querySelector(".line");
  item.classList.remove("keep", "drop", "relabel");
  for (const old of item.querySelectorAll(".decided")) old.remove();
  if (!pick || !line) return;
  item.classList.add(pick.decision);
  line.append(make("span", { class: "decided", text: pick.decision === "relabel" ? "→ " + pick.new_label : pick.decision }));
}
function showPicks() {
  document.getElementById("count").textContent = String(picks.size);
  for (const item of document.querySelectorAll(".cell")) showDecision(item);
  if (state.view === "decisions") fillDecided();
  if (state.view === "map") drawMap();
  if (state.open !== null) showButtons(state.open);
}
function fillDecided() {
  const here = Array.from(picks.keys()).filter(function (id) { return placeOf.has(id); }).map(function (id) { return placeOf.get(id); });
  fillStrip(document.getElementById("decided"), here.filter(function (place) { return matches(known.label[place]); }), "influence");
  const elsewhere = picks.size - here.length, counts = {};
  for (const pick of picks.values()) counts[pick.decision] = (counts[pick.decision] || 0) + 1;
  const each = ["keep", "drop", "relabel"].filter(function (what) { return counts[what]; }).map(function (what) { return what + " " + counts[what]; });
  const more = elsewhere ? "; " + elsewhere + " of them not shown on this page but exported with the others" : "";
  document.getElementById("decided-said").textContent = picks.size ? picks.size + " decided: " + each.join(", ") + more : "Nothing decided yet";
  document.getElementById("command").textContent = nextCommand();
}
function tell(text) { document.getElementById("said").textContent = text; }

// What is typed next; the file has the name of the data.
function baseName() {
  const last = known.origin.data.split(/[\\/]/).filter(Boolean).pop() || "data";
  return last.replace(/\.(csv|tsv|parquet|pq|feather|npy|npz)(\.gz)?$/i, "").replace(/[^\w.-]/g, "-");
}
function quoted(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'"; }
function nextCommand() {
  return "rarefy clean " + quoted(known.origin.data || "DATA") + " --picks " + baseName() + "-picks.json --out " + baseName() + "-clean";
}
function exported() {
  const rows = Array.from(picks.values()).sort(function (a, b) { return a.index - b.index; });
  const head = { format: known.origin.format, data: known.origin.data, fingerprint: known.fingerprint, read: known.origin.read };
  return JSON.stringify(Object.assign(head, { picks: rows }), null, 1) + "\n";
}
function takeAlong() {
  if (!picks.size) { tell("nothing decided yet: open a sample, then K, D or R"); return; }
  const address = URL.createObjectURL(new Blob([exported()], { type: "application/json;charset=utf-8" }));
  const link = make("a", { href: address, download: baseName() + "-picks.json" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(function () { URL.revokeObjectURL(address); }, 10000);
  tell(picks.size + " decisions exported; then: " + nextCommand());
}
