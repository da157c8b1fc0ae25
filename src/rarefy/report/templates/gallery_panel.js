// One sample: its picture, names, numbers, why its score is what it is, and typical neighbours.
const panel = document.getElementById("panel");
let opener = null;

function times(factor) { return Number(factor.toPrecision(2)) + " times"; }

// The score is about |x - mean|^2 times how much the others vary along that direction: both are
// compared with the class's median sample.
function explained(place) {
  const label = known.label[place], score = number("influence", place), rank = percentile("influence", place);
  if (score === null) return "Its class has too few samples: without this one no covariance is left to compare with.";
  const parts = [];
  if (rank === 0 || rank === 100) parts.push("No sample of class " + known.classes[label] + " scores " + (rank ? "higher." : "lower."));
  else if (rank !== null) parts.push(rank + " % of class " + known.classes[label] + " score lower.");
  const distance = number("distance", place), middle = (known.medians.distance || [])[label];
  const shared = number("shared", place), own = number("own", place), usual = (known.medians.alignment || [])[label];
  if (distance !== null && middle && shared !== null && usual && distance > 0) {
    const far = distance / middle, along = shared / (distance * distance) / usual;
    parts.push("It lies " + times(far) + " as far from the class mean as the class's median sample, and along its direction " +
      "the other samples vary " + times(along) + " as much.");
    const high = far * far * along >= 1, byFar = Math.abs(2 * Math.log(far)) >= Math.abs(Math.log(along));
    parts.push((high ? "High" : "Low") + " mostly by its " + (byFar ? "distance." : "direction."));
  }
  if (own !== null && shared !== null && own + shared > 0) {
    const part = Number((100 * own / (own + shared)).toPrecision(2));
    parts.push("Of what it adds, " + Number((100 - part).toPrecision(5)) + " % is shared with other samples and " + part +
      " % is its own; the divisor's term is the same for its whole class.");
  }
  return parts.join(" ");
}
// The terms as bars from a common zero.
function terms(place) {
  const names = ["own", "shared", "shrinking", "influence"].filter(function (name) { return number(name, place) !== null; });
  if (names.length < 2) return null;
  const values = names.map(function (name) { return number(name, place); });
  const low = Math.min(0, ...values), high = Math.max(0, ...values), scale = 190 / (high - low || 1), zero = 88 - low * scale;
  const label = names.map(function (name, turn) { return known.words[name] + " " + values[turn]; }).join(", ");
  const drawing = draw("svg", { viewBox: "0 0 360 " + 20 * names.length, class: "terms", role: "img", "aria-label": "Terms of the score: " + label });
  names.forEach(function (name, turn) {
    const width = Math.abs(values[turn]) * scale, left = Math.min(zero, zero + values[turn] * scale), top = 20 * turn;
    drawing.append(draw("text", { x: 0, y: top + 14, text: known.words[name] }));
    drawing.append(draw("rect", { class: name, x: left, y: top + 3, width: Math.max(width, .5), height: 14, fill: "currentColor" }));
    drawing.append(draw("text", { x: 284, y: top + 14, text: said(values[turn]) }));
  });
  drawing.append(draw("line", { x1: zero, x2: zero, y1: 0, y2: 20 * names.length }));
  return drawing;
}
function scoresWithMark(place) {
  const figure = document.querySelector("#c" + known.label[place] + " .scores"), score = number("influence", place);
  if (!figure || score === null) return null;
  const copy = figure.cloneNode(true), drawing = copy.querySelector("svg");
  const low = Number(drawing.dataset.low), high = Number(drawing.dataset.high);
  const [width, height] = drawing.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const x = high > low ? Math.min(Math.max((score - low) / (high - low), 0), 1) * (width - 2) + 1 : width / 2;
  drawing.append(draw("line", { x1: x, x2: x, y1: 0, y2: height }));
  return copy;
}
function numbersTable(place) {
  const body = make("tbody", {});
  for (const name of Object.keys(known.words)) {
    const rank = percentile(name, place);
    const ranked = make("td", { text: rank === null ? "–" : String(rank) });
    if (rank !== null) ranked.append(" ", make("span", { class: "rank", style: "--rank:" + rank + "%", "aria-hidden": "true" }));
    body.append(make("tr", {}, make("th", { scope: "row", text: known.words[name] }), make("td", { text: said(number(name, place)) }), ranked));
  }
  const heads = [make("th", { text: "number" }), make("td", { text: "value" }), make("td", { text: "percentile in class" })];
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body);
}
function neighbours(place) {
  const near = known.near[place];
  if (!near.length) {
    const asked = known.near.some(function (one) { return one.length; });
    return asked ? [make("p", { class: "quiet", text: "Its typical neighbours are left out, so that the page stays small." })] : [];
  }
  const list = make("ul", { class: "strip" });
  fillStrip(list, near, "influence");
  return [make("h3", { text: "Nearest typical samples" }), list];
}
function facts(place) {
  const found = [], word = coded("triage", place), rule = coded("rule", place), other = coded("neighbour_label", place);
  if (word) found.push(make("p", {}, make("span", { class: "chip", text: word })));
  if (rule) found.push(make("p", { class: "rule", text: rule }));
  const given = number("given_probability", place), likely = number("suggested_probability", place), instead = suggestion(place);
  if (given !== null && instead) {
    found.push(make("p", { class: "quiet", text: "Classifiers that have not seen it say " + instead + " with probability " + said(likely) + ", " + className(place) + " with " + said(given) + "." }));
  }
  if (other && number("disagreement", place) !== null) {
    found.push(make("p", { class: "quiet", text: "Most common label among its neighbours: " + other + "." }));
  }
  const copies = known.copies ? known.copies[place] : 0, conflict = known.conflict && known.conflict[place];
  if (copies) {
    const text = copies + (copies === 1 ? " other sample is" : " other samples are") + " identical";
    found.push(make("p", { class: "quiet", text: text + (conflict ? ", with another label among them." : ".") }));
  }
  return found;
}
// Features by name, odd ones first, beside what is usual in its class and in the suggested one.
function columns(place) {
  if (!known.columns) return [];
  const { names, values, told, usual } = known.columns, other = known.suggested[place];
  const odd = told[place], order = odd.concat(names.map(function (_, at) { return at; }).filter(function (at) { return !odd.includes(at); }));
  const classes = [known.label[place]].concat(other < 0 ? [] : [other]);
  const heads = ["feature", "value"].concat(classes.map(function (label) { return "usual in " + known.classes[label]; }));
  const body = make("tbody", {});
  for (const at of order) {
    const cells = [values[place][at]].concat(classes.map(function (label) { return usual[label][at]; }));
    body.append(make("tr", {}, make("th", { scope: "row", text: names[at] }), ...cells.map(function (value) { return make("td", { text: said(value) }); })));
  }
  const head = make("tr", {}, ...heads.map(function (text, turn) { return make(turn ? "td" : "th", { text: text }); }));
  return [make("table", { class: "features" }, make("thead", {}, head), body)];
}

// Keep, drop, relabel; the suggested label is chosen already.
function decisionButtons(place) {
  const row = make("div", { class: "decide", role: "group", "aria-label": "Decision" });
  const select = make("select", { id: "to", "aria-label": "relabel to" });
  for (const [number_, name] of Object.entries(known.classes)) {
    if (Number(number_) !== known.label[place]) select.append(make("option", { value: name, text: name }));
  }
  const pick = decisionOf(place), first = (pick && pick.new_label) || suggestion(place);
  if (first) select.value = first;
  else if (select.options.length > 1) select.prepend(make("option", { value: "", text: "a class ...", selected: true }));
  for (const [what, text, key] of [["keep", "Keep", "K"], ["drop", "Drop", "D"], ["relabel", "Relabel", "R"]]) {
    const button = make("button", { type: "button", "data-do": what }, text + " ", make("kbd", { text: key }));
    button.addEventListener("click", function () { decideHere(what); });
    row.append(button);
    if (what === "relabel") row.append(select);
  }
  const clear = make("button", { type: "button", "data-do": "" }, "Undecided ", make("kbd", { text: "U" }));
  clear.addEventListener("click", function () { decideHere(""); });
  const shut = make("button", { type: "button", class: "shut" }, "Close ", make("kbd", { text: "Esc" }));
  shut.addEventListener("click", closeSample);
  row.append(clear, shut);
  return row;
}
function showButtons(place) {
  const pick = decisionOf(place);
  for (const button of panel.querySelectorAll("[data-do]")) {
    button.setAttribute("aria-pressed", String(button.dataset.do === (pick ? pick.decision : "")));
  }
}
function openSample(place, from) {
  state.open = place;
  if (from) opener = from;
  const large = known.pictures[place] ? [make("div", { class: "tile large t" + place, role: "img", "aria-label": spoken(place) })] : [];
  const table = columns(place);
  const inner = [
    decisionButtons(place),
    make("h2", { text: className(place) }),
    ...large,
    ...facts(place),
    ...table,
    ...neighbours(place),
    make("h3", { text: "Why this score" }), make("p", { text: explained(place) }),
    terms(place), scoresWithMark(place), numbersTable(place),
    make("p", { class: "quiet" }, make("code", { text: known.name[place] || fileName(place) })),
    make("p", { class: "quiet" }, "id ", make("code", { text: known.id[place] }), ", index " + known.index[place]),
  ].filter(Boolean);
  panel.replaceChildren(...inner);
  panel.scrollTop = 0;
  showButtons(place);
  if (panel.hidden) { // beside the panel the page is narrower: what was clicked must not slip away
    panel.hidden = false;
    document.documentElement.classList.add("with-panel");
    if (opener) requestAnimationFrame(function () { opener.scrollIntoView({ block: "nearest" }); });
  }
  for (const item of document.querySelectorAll(".cell.opened")) item.classList.remove("opened");
  for (const item of document.querySelectorAll('.cell[data-r="' + place + '"]')) item.classList.add("opened");
}
function closeSample() {
  if (panel.hidden) return;
  panel.hidden = true;
  state.open = null;
  document.documentElement.classList.remove("with-panel");
  for (const item of document.querySelectorAll(".cell.opened")) item.classList.remove("opened");
  if (opener && opener.isConnected) opener.focus();
}
