"use strict";
// What is known, what is chosen, and how a sample and a strip of samples are drawn.
const known = JSON.parse(document.getElementById("numbers").textContent);
const state = { view: "", measure: "influence", find: "", open: null };
const marks = { "rare but right": "R", "maybe mislabelled": "L", "maybe corrupt": "C", "duplicate in conflict": "D" };
const places = known.label.map(function (_, place) { return place; });
const byClass = new Map();
for (const place of places) {
  if (!byClass.has(known.label[place])) byClass.set(known.label[place], []);
  byClass.get(known.label[place]).push(place);
}

function make(tag, attributes) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") element.textContent = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...Array.prototype.slice.call(arguments, 2));
  return element;
}
const drawings = new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;
function draw(tag, attributes) { // the same for drawings
  const element = document.createElementNS(drawings, tag);
  for (const [name, value] of Object.entries(attributes)) if (name !== "text") element.setAttribute(name, value);
  if ("text" in attributes) element.textContent = attributes.text;
  return element;
}
function number(name, place) { return known.numbers[name] ? known.numbers[name][place] : null; }
function percentile(name, place) { return known.percentiles[name] ? known.percentiles[name][place] : null; }
function said(value) {
  if (value === null || value === undefined) return "–";
  return value && Math.abs(value) < 1e-4 ? value.toExponential() : String(value);
}
function coded(name, place) { return known[name] ? known[name][0][known[name][1][place]] : ""; }
function className(place) { return known.classes[known.label[place]]; }
function fileName(place) {
  const name = known.name[place];
  if (!name) return "sample " + known.index[place];
  return name.slice(name.lastIndexOf(/^[A-Za-z]:\\/.test(name) ? "\\" : "/") + 1);
}
function suggestion(place) { return known.suggested[place] < 0 ? "" : known.classes[known.suggested[place]]; }
function spoken(place) {
  const score = number("influence", place), rank = percentile("influence", place);
  const told = [className(place), fileName(place), "influence " + (score === null ? "undefined" : said(score))];
  return told.concat(rank === null ? [] : ["percentile " + rank]).join(", ");
}
function matches(label) { return !state.find || known.classes[label].toLowerCase().includes(state.find); }

function picture(place) {
  if (known.pictures[place]) return [make("span", { class: "tile t" + place })];
  const told = [make("span", { class: "words", text: fileName(place) })];
  if (!known.columns) return told;
  const values = known.columns.values[place];
  return told.concat(known.columns.told[place].map(function (at) {
    return make("span", { class: "feature" }, make("span", { text: known.columns.names[at] }), " ", make("strong", { text: said(values[at]) }));
  }));
}
// A sample: a button that opens it, its label where classes are mixed, the number it is sorted by,
// and what was decided.
function cell(place, name, first, mixed) {
  const title = className(place) + " · " + fileName(place);
  const button = make("button", { type: "button", class: "open", tabindex: first ? 0 : -1, "aria-label": spoken(place), title: title }, ...picture(place));
  const value = number(name, place), text = value === null && name === "influence" ? "undefined" : said(value);
  const word = coded("triage", place), other = suggestion(place);
  const mark = word && !mixed ? [make("span", { class: "mark", title: word, text: marks[word] || word[0].toUpperCase() })] : [];
  const line = make("span", { class: "line" }, ...mark, make("span", { class: "value", title: known.words[name], text: text }));
  const doubt = mixed && other ? [make("span", { class: "other", text: " → " + other + "?" })] : [];
  const label = mixed ? [make("span", { class: "label", text: className(place) }, ...doubt)] : [];
  const item = make("li", { class: "cell", "data-r": place }, button, ...label, line);
  showDecision(item);
  item.classList.toggle("opened", state.open === place);
  return item;
}
function fillStrip(list, chosen, name) {
  const held = list.contains(document.activeElement) ? document.activeElement.closest(".cell").dataset.r : null;
  const mixed = list.dataset.kind === "mixed";
  list.all = chosen;
  list.replaceChildren(...chosen.map(function (place, turn) { return cell(place, name || state.measure, turn === 0, mixed); }));
  const again = held === null ? null : list.querySelector('[data-r="' + held + '"] .open');
  if (again) again.focus({ preventScroll: true });
}

// The samples of a class with the highest (sign 1) or lowest (-1) values. The page holds so many of
// each end for every measure, so these are the class's own ends, not those of what happens to be shown.
function ends(label, name, sign, most) {
  const column = known.numbers[name];
  return (byClass.get(label) || []).filter(function (place) { return column[place] !== null && number("influence", place) !== null; })
    .sort(function (a, b) { return sign * (column[b] - column[a]) || a - b; }).slice(0, most);
}
// Buttons that decide about all of a list at once.
function bulk(list) {
  const row = make("p", { class: "bulk" });
  const whole = Array.from(list.children, function (item) { return Number(item.dataset.r); });
  for (const [what, text] of [["relabel", "relabel all as suggested"], ["drop", "drop all"], ["keep", "keep all"], ["", "clear"]]) {
    if (what === "relabel" && whole.length && !whole.some(suggestion)) continue;
    const button = make("button", { type: "button", "data-bulk": what || "clear", text: text });
    button.addEventListener("click", function () { decideAll(list.all, what); });
    row.append(button);
  }
  return row;
}
function fillCard(card) {
  const label = Number(card.dataset.c), strips = card.querySelector(".strips");
  const [name, words, most] = known.measures.find(function (one) { return one[0] === state.measure; });
  if (!card.querySelector(".strip")) return; // a class without scores
  const by = name === "influence" ? "" : " by " + words;
  const parts = card.dataset.all || !most
    ? [["All " + byClass.get(label).length + " shown here, highest " + words + " first", ends(label, name, 1, Infinity)]]
    : [["Highest" + by, ends(label, name, 1, most)], ["Lowest" + by, ends(label, name, -1, most)], ["At random", known.random[label] || []]];
  const filled = [];
  for (const [text, chosen] of parts) {
    const list = make("ul", { class: "strip" });
    fillStrip(list, chosen);
    filled.push(make("h3", { text: text }), list);
  }
  const more = make("button", { type: "button", class: "more", text: card.dataset.all ? "only the ends" : "all shown of this class, sorted" });
  more.addEventListener("click", function () {
    if (card.dataset.all) delete card.dataset.all; else card.dataset.all = "yes";
    fillCard(card);
    card.querySelector(".more").focus();
  });
  const held = strips.contains(document.activeElement) && document.activeElement.closest(".cell");
  strips.replaceChildren(...filled, ...(most ? [more] : []));
  if (held) {
    const again = strips.querySelector('[data-r="' + held.dataset.r + '"] .open');
    if (again) again.focus({ preventScroll: true });
  }
}
function fillMixed(list) {
  if (!list.whole) list.whole = Array.from(list.children, function (item) { return Number(item.dataset.r); });
  fillStrip(list, list.whole.filter(function (place) { return matches(known.label[place]); }), list.dataset.measure);
}

// A thousand classes are drawn as they come near the screen.
const close = new Set();
let edition = 0;
function fill(element) {
  if (element.edition === edition) return;
  element.edition = edition;
  if (element.classList.contains("card")) fillCard(element);
  else fillMixed(element);
}
const watcher = new IntersectionObserver(function (entries) {
  for (const entry of entries) {
    if (entry.isIntersecting) { close.add(entry.target); fill(entry.target); } else close.delete(entry.target);
  }
}, { rootMargin: "900px" });
function refresh() {
  edition += 1;
  close.forEach(fill);
}
