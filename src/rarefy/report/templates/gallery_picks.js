// Ticked samples: kept by the browser under the data's fingerprint, exported as a file or copied.
// A pick carries its own record, so that one that a later page does not show is not lost.
const drawer = "rarefy-picks-" + known.fingerprint;
const placeOf = new Map(known.index.map(function (index, place) { return [String(index), place]; }));
let picks = new Map();

function record(place) {
  const row = { id: known.id[place], index: known.index[place], name: known.name[place], label: className(place) };
  row.influence = number("influence", place);
  row.percentile = percentile("influence", place);
  row.triage = coded("triage", place);
  return row;
}
function loadPicks() {
  try {
    const kept = JSON.parse(localStorage.getItem(drawer) || "[]");
    picks = new Map(kept.map(function (row) { return [String(row.index), row]; }));
  } catch (error) { picks = new Map(); } // a browser may keep nothing for local files
  for (const index of picks.keys()) if (placeOf.has(index)) picks.set(index, record(placeOf.get(index)));
}
function isPicked(place) { return picks.has(String(known.index[place])); }
function setPicked(chosen, on) {
  for (const place of chosen) {
    if (on) picks.set(String(known.index[place]), record(place));
    else picks.delete(String(known.index[place]));
  }
  keepPicks();
}
function keepPicks() {
  try { localStorage.setItem(drawer, JSON.stringify(Array.from(picks.values()))); } catch (error) {
    tell("picks are lost when this page closes: export them");
  }
  showPicks();
}
function showPicks() {
  document.getElementById("count").textContent = String(picks.size);
  for (const box of document.querySelectorAll(".pick")) {
    box.checked = isPicked(Number((box.closest("[data-r]") || box).dataset.r));
    const item = box.closest(".cell");
    if (item) item.classList.toggle("picked", box.checked);
  }
  if (state.view === "picked") fillPicked();
}
function fillPicked() {
  const here = Array.from(picks.keys()).filter(function (index) { return placeOf.has(index); }).map(function (index) { return placeOf.get(index); });
  fillStrip(document.getElementById("picked"), here.filter(function (place) { return matches(known.label[place]); }), "influence");
  const elsewhere = picks.size - here.length;
  const more = elsewhere ? ", " + elsewhere + " of them not shown on this page but exported with the others" : "";
  const how = picks.size ? "." : ": tick samples with the space bar or their box.";
  document.getElementById("picked-said").textContent = picks.size + " picked" + more + how;
}
function tell(text) { document.getElementById("said").textContent = text; }

function quoted(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}
function exported(kind) {
  const rows = Array.from(picks.values()).sort(function (a, b) { return a.index - b.index; });
  if (kind === "json") return JSON.stringify(rows, null, 1) + "\n";
  if (kind === "csv") {
    const names = ["id", "index", "name", "label", "influence", "percentile", "triage"];
    return [names].concat(rows.map(function (row) { return names.map(function (name) { return row[name]; }); }))
      .map(function (line) { return line.map(quoted).join(","); }).join("\r\n") + "\r\n";
  }
  return rows.map(function (row) { return row.id + "\n"; }).join("");
}
async function takeAlong(kind) {
  if (kind === "clear") {
    if (picks.size && window.confirm("Clear " + picks.size + " picks?")) { picks.clear(); keepPicks(); tell("picks cleared"); }
    return;
  }
  const text = exported(kind);
  if (kind === "copy") {
    try { await navigator.clipboard.writeText(text); } catch (error) {
      const area = make("textarea", {});
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    tell(picks.size + " ids copied");
    return;
  }
  const types = { csv: "text/csv", json: "application/json", txt: "text/plain" };
  const address = URL.createObjectURL(new Blob([text], { type: types[kind] + ";charset=utf-8" }));
  const link = make("a", { href: address, download: drawer + "." + kind });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(function () { URL.revokeObjectURL(address); }, 10000);
  tell(picks.size + " picks exported");
}
