// Search without a server. The theme asks a worker, which fetches the index: neither is allowed to a
// page that was opened from disk. This takes the worker's place and loads the index as a script.
window.Worker = class {
  postMessage(message) {
    if (message.query) {
      this.onmessage({ data: { results: this.search(message.query) } });
    } else if (document.getElementById("mkdocs-search-query")) {
      const load = (names) => {
        if (!names.length) return this.ready();
        const script = document.createElement("script");
        script.src = base_url + "/search/" + names[0];
        script.onload = () => load(names.slice(1));
        document.head.append(script);
      };
      load(["lunr.js", "search_index.js"]);
    }
  }

  ready() {
    this.pages = new Map(search_index.docs.map((page) => [page.location, page]));
    this.index = lunr(function () {
      this.ref("location");
      this.field("title", { boost: 10 });
      this.field("text");
      search_index.docs.forEach((page) => this.add(page));
    });
    this.onmessage({ data: { config: search_index.config } });
    this.onmessage({ data: { allowSearch: true } });
  }

  search(query) {
    // what was typed is no formula of lunr's; a word as it stands counts more than its beginning
    const words = query.toLowerCase().split(/[^\p{L}\p{N}.]+/u).filter((word) => word);
    const found = this.index.query((asked) => {
      asked.term(words, { boost: 10 });
      asked.term(words, { wildcard: lunr.Query.wildcard.TRAILING, usePipeline: false });
    });
    // a page and its first section have one title: the better of the two
    const best = new Map();
    for (const one of found) {
      const page = this.pages.get(one.ref);
      const name = page.location.split("#")[0] + page.title;
      const summary = page.text.replaceAll("¶", "").substring(0, 200);
      if (!best.has(name)) best.set(name, { ...page, summary: summary });
    }
    return [...best.values()].slice(0, 50);
  }
};
