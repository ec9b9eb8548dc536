// Draws the charts that the page holds. The library is inline, or the one file that a page of a
// site names; nothing else is loaded, and the page's Content-Security-Policy forbids it.
// Expressions are interpreted (`ast`), so no eval is needed.
(() => {
  "use strict";
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const views = new Map();
  const problems = [];
  const library = document.body.dataset.charts;

  const fitted = (spec, px) => {
    const walk = (value) => {
      if (Array.isArray(value)) return value.map(walk);
      if (value === null || typeof value !== "object") return value;
      const out = {};
      for (const [key, item] of Object.entries(value)) {
        out[key] = key === "width" && typeof item === "number" && "height" in value ? px
          : key === "datasets" ? item : walk(item);
      }
      return out;
    };
    const found = walk(spec);
    found.config.legend.columns = Math.max(1, Math.floor(px / (spec.usermeta?.legend_px ?? 150)));
    found.config.title.limit = px + 40;
    return found;
  };

  const options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true,
    tooltip: { disableDefaultStyle: true }, defaultStyle: false,
  };

  const draw = async (figure) => {
    const place = figure.querySelector(".chart");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const room = Math.max(240, place.clientWidth);
    const embed = async (px) => {
      views.get(figure)?.finalize();
      const result = await vegaEmbed(place, fitted(spec, px), options);
      views.set(figure, result);
      return place.querySelector("svg");
    };
    try {
      if (typeof vegaEmbed === "undefined") throw new Error(`${library} could not be loaded`);
      // Axis labels take room that is only known once drawn: draw, measure, and draw to fit.
      let px = room - 60;
      let svg = await embed(px);
      const over = Number(svg.getAttribute("width")) - room;
      if (Math.abs(over) > 2) svg = await embed(Math.max(120, px - over));
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", place.dataset.alt);
    } catch (error) {
      problems.push(String(error));
      const said = document.createElement("p");
      said.className = "failed";
      said.textContent = `This chart could not be drawn (${error}). Its figures are in the tables.`;
      place.replaceChildren(said);
    }
  };

  const all = async () => {
    for (const figure of figures) await draw(figure);
    document.documentElement.dataset.charts = problems.length ? "failed" : "drawn";
  };

  const save = (figure) => {
    const copy = figure.querySelector(".chart svg").cloneNode(true);
    const style = getComputedStyle(document.documentElement);
    const text = new XMLSerializer().serializeToString(copy)
      .replace(/var\((--\w+)\)/g, (whole, name) => style.getPropertyValue(name).trim() || whole);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = `${figure.id}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  for (const figure of figures) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = "Save as SVG";
    button.addEventListener("click", () => save(figure));
    figure.querySelector("h3").append(button);
  }

  let width = document.documentElement.clientWidth;
  let waiting = 0;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(all, 150);
  });
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  if (library === undefined) all();
  else {
    const script = document.createElement("script");
    script.src = library;
    script.onload = script.onerror = all;
    document.head.append(script);
  }
})();
