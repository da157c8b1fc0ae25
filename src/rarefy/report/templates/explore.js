"use strict";
(async function () {
  const ALL = -1, CHART = "chart";
  const byId = function (id) { return document.getElementById(id); };
  async function unpacked(id) {
    const packed = Uint8Array.from(atob(byId(id).textContent), function (c) { return c.charCodeAt(0); });
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  const script = document.createElement("script");
  script.text = await unpacked("plotly");
  document.head.append(script);
  const start = JSON.parse(await unpacked("start"));
  const parameters = start.computes.length ? start.parameters : {};
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const state = { source: "", view: "", output: "", x: "", by: "", at: {}, set: {} };
  let names = [], turn = 0, waiting = 0;

  // Where we stand: the source, the positions of its sliders, and the address that says so

  function computed() { return start.computes.includes(state.source); }
  function key() {  // as the server spells it
    if (!computed()) return state.source;
    return state.source + Object.keys(parameters).sort().map(function (name) {
      const about = parameters[name], place = state.set[name];
      return place === about.usual ? "" : `;${name}=${about.labels[place]}`;
    }).join("");
  }
  function data() { return start.sources[key()] || start.sources[state.source]; }
  function size(name) { return data().dims[name].labels.length; }
  function output() { return data().outputs.find(function (one) { return one.name === state.output; }); }
  function place(name, least) {  // (of what an output has by itself, steps mostly, the last)
    const usual = data().axes.includes(name) ? ALL : size(name) - 1;
    return Math.min(Math.max(state.at[name] ?? usual, least), size(name) - 1);
  }
  function stops(chart) {
    return data().axes.map(function (axis) {
      if (chart) return axis === state.x || axis === state.by ? ALL : place(axis, 0);
      return size(axis) > 1 ? place(axis, ALL) : ALL;
    });
  }
  function missing(at) {
    const axes = data().axes, sizes = axes.map(size);
    return data().there.filter(function (there, run) {
      for (let axis = axes.length - 1; axis >= 0; axis--) {
        const value = run % sizes[axis];
        if (at[axis] !== ALL && at[axis] !== value) return false;
        run = (run - value) / sizes[axis];
      }
      return !there;
    }).length;
  }
  function begin(source) {  // all of what is stored; of what has to be computed one line
    state.source = source in start.sources ? source : Object.keys(start.sources)[0];
    const shown = data();
    state.at = {};
    if (computed()) shown.axes.slice(0, -1).forEach(function (axis) { state.at[axis] = 0; });
    if (!output()) state.output = shown.outputs[0].name;
    settle();
  }
  function settle() {  // what a chart needs, where the output has it
    const dims = output().dims.filter(function (name) { return size(name) > 1; });
    if (!dims.includes(state.x)) state.x = dims.filter(function (name) { return data().axes.includes(name); }).pop() || dims[0] || output().dims[0];
    if (!dims.includes(state.by) || state.by === state.x) state.by = "";
  }
  function written() {
    const query = new URLSearchParams({ source: state.source, view: state.view });
    if (state.view === CHART) ["output", "x", "by"].forEach(function (name) { query.set(name, state[name]); });
    for (const name of Object.keys(state.at)) if (name in data().dims && state.at[name] !== ALL) query.set(`a.${name}`, data().dims[name].labels[place(name, 0)]);
    for (const name of Object.keys(parameters)) if (state.set[name] !== parameters[name].usual) query.set(`p.${name}`, parameters[name].labels[state.set[name]]);
    const address = `${location.href.split(/[?#]/)[0]}?${query}`;
    try { history.replaceState(null, "", address); } catch (error) { /* some browsers keep a file's address */ }
    return address;
  }
  function read() {
    const query = new URLSearchParams(location.search);
    for (const name of Object.keys(parameters)) {
      const found = parameters[name].labels.indexOf(query.get(`p.${name}`));
      state.set[name] = found < 0 ? parameters[name].usual : found;
    }
    begin(query.get("source"));
    state.view = query.get("view") || "";
    for (const name of ["output", "x", "by"]) if (query.has(name)) state[name] = query.get(name);
    if (!output()) state.output = data().outputs[0].name;
    settle();
    if (query.has("source")) state.at = {};
    for (const name of Object.keys(data().dims)) {
      const found = data().dims[name].labels.indexOf(query.get(`a.${name}`));
      if (found >= 0) state.at[name] = found;
    }
  }

  // Controls, made anew when another source, view or output is chosen

  function named(text) {
    const made = document.createElement("span");
    made.textContent = text;
    return made;
  }
  function select(label, options, value, change) {
    const outer = document.createElement("label"), inner = document.createElement("select");
    outer.append(named(label));
    options.forEach(function ([name, text]) { inner.add(new Option(text, name, false, name === value)); });
    inner.addEventListener("change", function () { change(inner.value); controls(); update(); });
    inner.dataset.name = label;
    outer.append(inner);
    return outer;
  }
  function slider(name, about, least, value, change) {
    const outer = document.createElement("label"), told = document.createElement("output"), inner = document.createElement("input");
    const say = function () { told.textContent = inner.value < 0 ? "all" : about.labels[inner.value]; inner.setAttribute("aria-valuetext", told.textContent); };
    Object.assign(inner, { type: "range", min: least, max: about.labels.length - 1, step: 1, value: value });
    inner.dataset.name = name;
    outer.title = about.meaning;
    outer.append(named(name), told, inner);
    say();
    inner.addEventListener("input", function () {
      say();
      change(Number(inner.value));
      clearTimeout(waiting);
      waiting = setTimeout(update, 80);
    });
    return outer;
  }
  function controls() {
    const shown = data(), chart = state.view === CHART, choices = [], sliders = [];
    const sources = Object.values(start.sources).filter(function (one) { return !start.served || !one.key.includes(";"); });
    choices.push(select("Results", sources.map(function (one) { return [one.key, one.title]; }), state.source, begin));
    const views = names.map(function (one) { return [one.name, one.title]; });
    choices.push(select("Show", [...views.length ? views : [["", "The study's own figures"]], [CHART, "A chart of one output"]], state.view, function (value) { state.view = value; }));
    if (chart) {
      const dims = output().dims.filter(function (name) { return size(name) > 1; }).map(function (name) { return [name, name]; });
      choices.push(select("Output", shown.outputs.map(function (one) { return [one.name, one.name]; }), state.output, function (value) { state.output = value; settle(); }));
      choices.push(select("Along", dims, state.x, function (value) { state.x = value; settle(); }));
      choices.push(select("One curve per", [["", "nothing"], ...dims.filter(function ([name]) { return name !== state.x; })], state.by, function (value) { state.by = value; }));
    }
    for (const name of chart ? output().dims : shown.axes) {
      if (size(name) < 2 || (chart && (name === state.x || name === state.by))) continue;
      const least = chart ? 0 : ALL;
      sliders.push(slider(name, shown.dims[name], least, place(name, least), function (value) { state.at[name] = value; }));
    }
    const further = computed() ? Object.keys(parameters).map(function (name) {
      return slider(name, parameters[name], 0, state.set[name], function (value) { state.set[name] = value; });
    }) : [];
    byId("choices").replaceChildren(...choices);
    byId("sliders").replaceChildren(byId("sliders").firstElementChild, ...sliders);
    byId("parameters").replaceChildren(...further);
    byId("further").hidden = !further.length;
  }

  // Figures: the study's own, or a chart of the numbers

  function lines(text, width) {  // plotly reads tags
    const safe = String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
    return safe.replace(new RegExp(`(.{${width}}[^ ]*) `, "g"), "$1<br>");
  }
  function wide(numbers, ratio) {  // over so many powers of ten that only their logarithms can be seen
    const known = numbers.filter(function (one) { return one !== null; });
    return known.length > 1 && known.every(function (one) { return one > 0; }) && known.reduce((a, b) => Math.max(a, b)) > ratio * known.reduce((a, b) => Math.min(a, b));
  }
  function chart() {
    const one = output(), along = data().dims[state.x], curves = state.by ? data().dims[state.by].labels : [""];
    const run = function (at) { return one.dims.reduce(function (sum, name) { return sum * size(name) + at[name]; }, 0); };
    const at = Object.fromEntries(one.dims.map(function (name) { return [name, place(name, 0)]; }));
    const traces = curves.map(function (label, curve) {
      const runs = along.labels.map(function (_, step) { return run({ ...at, [state.x]: step, ...state.by && { [state.by]: curve } }); });
      const off = function (a, b) { return runs.map(function (r) { return a[r] === null ? null : a[r] - b[r]; }); };
      return {
        type: "scatter", mode: "lines+markers", name: lines(`${state.by} ${label}`, 40),
        x: along.values || along.labels.map(function (text) { return lines(text, 14); }), y: runs.map(function (r) { return one.mid[r]; }),
        error_y: { type: "data", symmetric: false, array: off(one.high, one.mid), arrayminus: off(one.mid, one.low), thickness: 1, width: 3 },
        line: { color: start.colours[curve % start.colours.length], dash: ["solid", "dash", "dot"][Math.floor(curve / start.colours.length) % 3] },
        marker: { symbol: start.symbols[curve % start.symbols.length], size: 7 },
      };
    });
    const shown = [...one.low, ...one.high].filter(function (value) { return value !== null; }), logarithmic = wide(shown, 300);
    let low = shown.reduce((a, b) => Math.min(a, b), Infinity), high = shown.reduce((a, b) => Math.max(a, b), -Infinity);
    if (logarithmic) [low, high] = [Math.log10(low), Math.log10(high)];
    const room = 0.05 * (high - low) || 0.5, told = { size: 13 };
    const layout = {
      height: 440, margin: { l: 10, r: 12, t: 30, b: 10 }, font: { size: 13, family: "system-ui, sans-serif" }, hovermode: "closest",
      showlegend: Boolean(state.by), legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 },
      xaxis: { title: { text: lines(along.meaning ? `${state.x}: ${along.meaning}` : state.x, 60), font: told }, automargin: true, type: !along.values ? "category" : wide(along.values, 50) ? "log" : "linear" },
      yaxis: { title: { text: lines(state.output, 40), font: told }, automargin: true, type: logarithmic ? "log" : "linear", exponentformat: "power", range: shown.length ? [low - room, high + room] : undefined },
    };
    return {
      title: `${state.output} along ${state.x}`, panels: [{ title: "", figure: { data: traces, layout: layout } }],
      caption: `${one.meaning}. Median over ${data().seeds} seeds; bars: the middle half of them. The scale is that of all positions; theory, where there is any, is in the study's own figures.`,
    };
  }
  async function draw(picture) {
    const places = byId("panels");
    // (plotly keeps the margins of what it drew before)
    if (byId("heading").textContent !== picture.title) for (const old of places.children) Plotly.purge(old.lastElementChild);
    byId("heading").textContent = picture.title;
    byId("caption").textContent = picture.caption;
    while (places.children.length > picture.panels.length) { Plotly.purge(places.lastElementChild.lastElementChild); places.lastElementChild.remove(); }
    while (places.children.length < picture.panels.length) {  // (all of them first: they share the width)
      const made = document.createElement("div");
      made.append(document.createElement("h3"), document.createElement("div"));
      places.append(made);
    }
    for (const [number, panel] of picture.panels.entries()) {
      const [title, plot] = places.children[number].children;
      title.textContent = panel.problem ? `${panel.title}: ${panel.problem}` : panel.title;
      if (panel.problem) { Plotly.purge(plot); continue; }
      // (plotly writes into what it is given, and the same figure is drawn again later)
      const { data: traces, layout } = structuredClone(panel.figure);
      if (touch) layout.dragmode = false;  // a finger on a figure must still scroll the page
      await Plotly.react(plot, traces, layout, { responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover", modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] });
      Plotly.Plots.resize(plot);  // (fewer panels are wider)
    }
  }
  function tell(text, problem) {
    byId("status").textContent = text;
    byId("status").classList.toggle("problem", Boolean(problem));
  }

  // The server: cells that are missing are computed, figures are made there

  function query(at) {
    const asked = new URLSearchParams({ source: key() });
    data().axes.forEach(function (axis, place) { asked.set(`a.${axis}`, at[place]); });
    if (computed()) for (const name of Object.keys(parameters)) asked.set(`p.${name}`, state.set[name]);
    return asked;
  }
  async function ask(what, options) {
    let answer;
    try { answer = await fetch(what, options); } catch (error) { throw new Error("The server has ended: start rarefy explore again."); }
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.problem);
    return content;
  }
  async function compute(at, cells) {
    tell(`Computing ${cells} grid points with ${data().seeds} seeds each`);
    byId("bar").value = 0;
    byId("computing").hidden = false;
    const timer = setInterval(async function () {
      try { const far = await ask("progress"); if (far.total) byId("bar").value = far.done / far.total; } catch (error) { /* the request that computes says it */ }
    }, 300);
    try { await ask(`compute?${query(at)}`, { method: "POST" }); } finally { clearInterval(timer); }
    for (const name of Object.keys(start.figures)) if (name.startsWith(`${key()}|`)) delete start.figures[name];
    start.sources[key()] = await ask(`data?${query(at)}`);
  }
  async function update() {
    const mine = ++turn;
    try {
      if (!(key() in start.sources)) start.sources[key()] = await ask(`data?${query(stops(true))}`);
      if (mine !== turn) return;
      written();
      const shown = state.view === CHART, at = stops(shown), lacking = missing(at);
      if (lacking && computed()) await compute(at, lacking);
      if (mine !== turn) return;
      byId("computing").hidden = true;
      const gaps = missing(at), words = gaps ? `${gaps} of the chosen grid points are not computed.` : "";
      tell(words, gaps);
      if (shown) return await draw(chart());
      const name = `${key()}|${at.join(",")}`;
      if (!(name in start.figures) && start.served) {
        tell("Drawing the study's own figures at these positions");
        start.figures[name] = await ask(`figure?${query(at)}`);
        if (mine !== turn) return;
        tell(words, gaps);
      }
      const pictures = start.figures[name] || [{ problem: "The study's own figures were not saved at these positions; a chart has them all." }];
      if (pictures[0] && !pictures[0].problem) {
        if (JSON.stringify(names) !== JSON.stringify(pictures.map(function (one) { return { name: one.name, title: one.title }; }))) {
          names = pictures.map(function (one) { return { name: one.name, title: one.title }; });
          if (!names.some(function (one) { return one.name === state.view; })) state.view = names[0].name;
          controls();
          written();
        }
        return await draw(pictures.find(function (one) { return one.name === state.view; }) || pictures[0]);
      }
      tell(`${words} ${pictures.length ? pictures[0].problem : "The study has no figures of its own."} Below is a chart of one output.`, true);
      await draw(chart());
    } catch (error) {
      if (mine !== turn) return;
      byId("computing").hidden = true;
      tell(error.message, true);
    }
  }
  byId("stop").addEventListener("click", function () { fetch("stop", { method: "POST" }); });
  byId("link").addEventListener("click", async function () {
    const address = written();
    try { await navigator.clipboard.writeText(address); tell("The link is copied."); } catch (error) { tell(address); }
  });
  byId("save")?.addEventListener("click", function (event) {
    if (Object.values(start.sources).some(function (one) { return one.there.some(Boolean); })) return;
    event.preventDefault();
    tell("There is nothing to save: no cell is computed yet.", true);
  });
  read();
  controls();
  await update();
  document.documentElement.dataset.ready = "yes";  // (for tests)
})();
