"use strict";
async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), function (c) { return c.charCodeAt(0); });
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
// Live figures, drawn when they come near the screen; the still image stays where that fails.
(async function () {
  const places = Array.from(document.querySelectorAll(".live"));
  if (!places.length || !("DecompressionStream" in window)) return;
  const script = document.createElement("script");
  script.text = await unpacked("plotly");
  document.head.append(script);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const config = {
    responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  function coloured(figure) {
    const ink = dark.matches ? "#e8eaed" : "#1b1e23", grid = dark.matches ? "#363c45" : "#e1e4e9";
    const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: ink, tickcolor: ink };
    const layout = figure.layout;
    layout.font.color = ink;
    layout.paper_bgcolor = "rgba(0,0,0,0)";
    layout.plot_bgcolor = layout.plot_bgcolor || "rgba(0,0,0,0)";
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: dark.matches ? "#a5adb8" : "#7a828e", activecolor: ink };
    Object.assign(layout.xaxis, axis);
    Object.assign(layout.yaxis, axis);
    // on a touch screen a finger on a figure must still scroll the page
    if (touch) layout.dragmode = false;
    for (const trace of figure.data) {
      // around a line of ink over a map
      if (trace.meta && trace.meta.paper) {
        trace.line.color = dark.matches ? "#14171b" : "#ffffff";
        if (trace.marker) trace.marker.color = trace.line.color;
      }
      if (trace.meta && trace.meta.ink) {
        trace.line.color = ink;
        if (trace.marker) trace.marker.color = ink;
        if (trace.fill) trace.fillcolor = dark.matches ? "rgba(232,234,237,0.2)" : "rgba(0,0,0,0.15)";
      }
    }
    return figure;
  }
  // two pairs of axes, of a map and of the curves over it, must be zoomed together
  const paired = Object.assign({ showAxisDragHandles: false, doubleClick: "reset" }, config);
  async function draw(place) {
    const panel = place.parentElement;
    try {
      const source = document.getElementById(place.dataset.figure);
      const text = source.type === "text/plain" ? await unpacked(source.id) : source.textContent;
      const figure = coloured(JSON.parse(text));
      panel.classList.add("drawn");
      await Plotly.react(place, figure.data, figure.layout, figure.layout.xaxis2 ? paired : config);
    } catch (error) {
      panel.classList.remove("drawn");
    }
  }
  if (!("IntersectionObserver" in window)) { places.forEach(draw); return; }
  const watcher = new IntersectionObserver(function (entries) {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watcher.unobserve(entry.target);
        draw(entry.target.querySelector(".live"));
      }
    }
  }, { rootMargin: "600px" });
  places.forEach(function (place) { watcher.observe(place.parentElement); });
  dark.addEventListener("change", function () {
    for (const place of places) if (place.parentElement.classList.contains("drawn")) draw(place);
  });
})();
