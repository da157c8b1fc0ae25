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
function columns(place) {
  if (!known.columns) return [];
  const body = make("tbody", {});
  known.columns[0].forEach(function (name, turn) {
    const value = make("td", { text: said(known.columns[1][place][turn]) });
    body.append(make("tr", {}, make("th", { scope: "row", text: name }), value));
  });
  return [make("details", { open: known.columns[0].length <= 12 }, make("summary", { text: "Values" }), make("table", {}, body))];
}

function openSample(place, from) {
  state.open = place;
  if (from) opener = from;
  const pick = make("input", { type: "checkbox", class: "pick" });
  pick.checked = isPicked(place);
  const shut = make("button", { type: "button", class: "shut", text: "Close (Esc)" });
  shut.addEventListener("click", closeSample);
  const large = known.pictures[place] ? [make("div", { class: "tile large t" + place, role: "img", "aria-label": spoken(place) })] : [];
  const path = make("p", { class: "quiet" }, make("code", { text: fileName(place) }));
  const inner = [
    make("div", { class: "head" }, make("label", { "data-r": place }, pick, " picked"), shut),
    ...large,
    make("h2", { text: className(place) }),
    path,
    make("p", { class: "quiet" }, "id ", make("code", { text: known.id[place] }), ", index " + known.index[place]),
    ...facts(place),
    make("h3", { text: "Why this score" }), make("p", { text: explained(place) }),
    terms(place), scoresWithMark(place), numbersTable(place), ...neighbours(place), ...columns(place),
  ].filter(Boolean);
  panel.replaceChildren(...inner);
  panel.scrollTop = 0;
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
