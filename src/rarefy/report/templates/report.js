"use strict";
// The filter hides findings and studies that do not match; without a script all are shown.
(function () {
  const form = document.querySelector("form.filter");
  if (!form) return;
  const said = form.querySelector("output");
  function matches(item) {
    const paper = form.paper.value, outcome = form.outcome.value;
    const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (!paper || item.dataset.papers.split(" ").includes(paper))
      && (!outcome || item.dataset.outcomes.split("|").includes(outcome))
      && words.every(function (word) { return item.dataset.words.includes(word); });
  }
  function sift(selector) {
    const items = Array.from(document.querySelectorAll(selector));
    for (const item of items) item.hidden = !matches(item);
    return items.filter(function (item) { return !item.hidden; }).length + " of " + items.length;
  }
  function filter() {
    said.textContent = sift("li[data-papers]") + " findings, " + sift("details.study") + " studies";
    for (const group of document.querySelectorAll("section.group")) {
      group.hidden = !group.querySelector("details.study:not([hidden])");
    }
  }
  form.addEventListener("input", filter);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(filter); });
  filter();
})();
// A link to a study unfolds it, also where the filter hides it.
(function () {
  function show() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const group = target.closest("section.group");
    if (group) group.hidden = target.hidden = false;
    if (target.matches("details")) target.open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", show);
  show();
})();
async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), function (c) { return c.charCodeAt(0); });
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
// Figures, drawn when their study is unfolded. Where there is a still image it stays if that fails.
(function () {
  if (!document.getElementById("plotly") || !("DecompressionStream" in window)) return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  let printing = false, script = null;
  const config = {
    responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  function library() {
    script = script || unpacked("plotly").then(function (text) {
      const element = document.createElement("script");
      element.text = text;
      document.head.append(element);
    });
    return script;
  }
  function coloured(figure) {
    const night = dark.matches && !printing;
    const ink = night ? "#e8eaed" : "#1b1e23", grid = night ? "#363c45" : "#e1e4e9";
    const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: ink, tickcolor: ink };
    const layout = figure.layout;
    layout.font.color = ink;
    layout.paper_bgcolor = "rgba(0,0,0,0)";
    layout.plot_bgcolor = layout.plot_bgcolor || "rgba(0,0,0,0)";
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: night ? "#a5adb8" : "#7a828e", activecolor: ink };
    Object.assign(layout.xaxis, axis);
    Object.assign(layout.yaxis, axis);
    // on a touch screen a finger on a figure must still scroll the page
    if (touch) layout.dragmode = false;
    for (const trace of figure.data) {
      // around a line of ink over a map
      if (trace.meta && trace.meta.paper) {
        trace.line.color = night ? "#14171b" : "#ffffff";
        if (trace.marker) trace.marker.color = trace.line.color;
      }
      if (trace.meta && trace.meta.ink) {
        trace.line.color = ink;
        if (trace.marker) trace.marker.color = ink;
        if (trace.fill) trace.fillcolor = night ? "rgba(232,234,237,0.2)" : "rgba(0,0,0,0.15)";
      }
    }
    return figure;
  }
  // two pairs of axes, of a map and of the curves over it, must be zoomed together
  const paired = Object.assign({ showAxisDragHandles: false, doubleClick: "reset" }, config);
  const known = new Map();
  function paint(place) {
    // made anew each time: plotly compares what it is given with what it has
    const figure = coloured(JSON.parse(known.get(place)));
    return Plotly.react(place, figure.data, figure.layout, figure.layout.xaxis2 ? paired : config);
  }
  async function draw(place) {
    const panel = place.parentElement;
    if (panel.classList.contains("drawn")) return;
    panel.classList.add("drawn");
    try {
      await library();
      known.set(place, await unpacked(place.dataset.figure));
      await paint(place);
    } catch (error) {
      panel.classList.remove("drawn");
      known.delete(place);
      throw error;
    }
  }
  function unfolded(element) {
    for (let up = element.parentElement.closest("details"); up; up = up.parentElement.closest("details")) {
      if (!up.open) return false;
    }
    return true;
  }
  function drawn(within) {
    return Promise.all(Array.from(within.querySelectorAll(".live")).filter(unfolded).map(draw));
  }
  document.addEventListener("toggle", function (event) { drawn(event.target); }, true);
  function repaint() { for (const place of known.keys()) paint(place); }
  dark.addEventListener("change", repaint);
  for (const [event, now] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, function () { printing = now; if (dark.matches) repaint(); });
  }
  drawn(document);
})();
