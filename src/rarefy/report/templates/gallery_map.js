// The map: a point per sample, coloured by class; a rectangle selects, a click opens.
const palette = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a7a00", "#777777"];
const canvas = document.getElementById("map");
function colour(label) { return palette[label] || "hsl(" + Math.round(label * 137.5 % 360) + " 65% 45%)"; }
let alone = null, drawn = null; // the class that is seen alone, the rectangle in the making

function point(place) { return [20 + known.map[0][place] * .96, 980 - known.map[1][place] * .96]; }
function onMap() { return places.filter(function (place) { return (alone === null || known.label[place] === alone) && matches(known.label[place]); }); }
function drawMap() {
  const pen = canvas.getContext("2d"), ink = getComputedStyle(document.body).color;
  pen.clearRect(0, 0, 1000, 1000);
  for (const place of onMap()) {
    const [x, y] = point(place), pick = decisionOf(place);
    pen.globalAlpha = .75;
    pen.fillStyle = colour(known.label[place]);
    pen.beginPath();
    pen.arc(x, y, 7, 0, 7);
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = ink;
    pen.lineWidth = 2.5;
    if (coded("triage", place) === "maybe mislabelled") { pen.beginPath(); pen.arc(x, y, 12, 0, 7); pen.stroke(); }
    if (pick && pick.decision === "drop") {
      pen.beginPath();
      pen.moveTo(x - 9, y - 9); pen.lineTo(x + 9, y + 9); pen.moveTo(x - 9, y + 9); pen.lineTo(x + 9, y - 9);
      pen.stroke();
    }
  }
  if (drawn) { pen.strokeStyle = ink; pen.lineWidth = 2; pen.strokeRect(drawn[0], drawn[1], drawn[2] - drawn[0], drawn[3] - drawn[1]); }
}
function selectOnMap(chosen) {
  const list = document.getElementById("chosen"), group = document.getElementById("chosen-group");
  group.hidden = !chosen.length;
  fillStrip(list, chosen.slice(0, 200), "influence");
  list.all = chosen;
  const more = chosen.length > 200 ? ", 200 of them shown" : "";
  document.getElementById("chosen-said").textContent = chosen.length + " selected" + more;
}
function startMap() {
  if (!canvas) return;
  const list = document.getElementById("chosen");
  list.before(bulk(list));
  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * 1000, (event.clientY - box.top) / box.height * 1000];
  }
  canvas.addEventListener("pointerdown", function (event) { canvas.setPointerCapture(event.pointerId); drawn = at(event).concat(at(event)); });
  canvas.addEventListener("pointermove", function (event) { if (drawn) { drawn = drawn.slice(0, 2).concat(at(event)); drawMap(); } });
  canvas.addEventListener("pointercancel", function () { drawn = null; drawMap(); });
  canvas.addEventListener("pointerup", function (event) {
    if (!drawn) return;
    const [x1, y1, x2, y2] = drawn.slice(0, 2).concat(at(event));
    drawn = null;
    drawMap();
    if (Math.abs(x1 - x2) + Math.abs(y1 - y2) > 15) {
      selectOnMap(onMap().filter(function (place) {
        const [x, y] = point(place);
        return x >= Math.min(x1, x2) && x <= Math.max(x1, x2) && y >= Math.min(y1, y2) && y <= Math.max(y1, y2);
      }));
      return;
    }
    let best = null, near = 40;
    for (const place of onMap()) {
      const [x, y] = point(place), far = Math.hypot(x - x1, y - y1);
      if (far < near) { best = place; near = far; }
    }
    if (best !== null) { selectOnMap([best]); openSample(best, document.querySelector("#chosen .open")); }
  });
  const legend = document.getElementById("legend");
  for (const label of Array.from(byClass.keys()).sort(function (a, b) { return a - b; }).slice(0, 40)) {
    const button = make("button", { type: "button", "aria-pressed": "false" }, make("span", { class: "dot", style: "background:" + colour(label) }), known.classes[label]);
    button.addEventListener("click", function () {
      alone = alone === label ? null : label;
      for (const one of legend.querySelectorAll("button")) one.setAttribute("aria-pressed", String(one === button && alone !== null));
      drawMap();
    });
    legend.append(make("li", {}, button));
  }
}
