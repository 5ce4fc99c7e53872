/* Draws each chart anew when it comes into sight, so that it answers the pointer; until then, on paper, and wherever
   scripts do not run, the picture of it stands in its place. */
(function () {
  "use strict";
  var NARROW_LABELS = 110;
  var embed = window.vegaEmbed;
  if (!embed || !window.IntersectionObserver) return;
  document.documentElement.classList.add("js");

  /* The specification with the width that there is. `rest` is what labels take beside the plot. */
  function fitted(figure, room) {
    var spec = JSON.parse(figure.querySelector("script").textContent);
    var still = figure.querySelector(".still svg");
    var view = figure.dataset.view ? spec[figure.dataset.view] : spec;
    var width = parseFloat(still.getAttribute("width"));
    if (spec.hconcat) {
      if (room < width) {
        spec.vconcat = spec.hconcat;
        delete spec.hconcat;
        spec.vconcat.forEach(function (each) { each.width = Math.max(220, room - 80); });
      }
      return spec;
    }
    var rest = width - view.width;
    if (room < 700) {
      spec.config.legend.columns = 2;
      var y = view.encoding && view.encoding.y;
      if (y && y.axis && y.sort) {
        breakLabels(y, view);
        if (y.axis.minExtent) y.axis.minExtent = y.axis.maxExtent = NARROW_LABELS;
      }
      rest = Math.min(rest, NARROW_LABELS + 30);
    }
    view.width = Math.max(220, Math.min(1400, room - rest));
    return spec;
  }

  /* Breaks the labels of rows into lines of NARROW_LABELS pixels: no label is cut. */
  function breakLabels(y, view) {
    var longest = Math.max.apply(null, y.sort.map(function (each) { return each.length; }));
    var wide = y.sort.some(function (each) { return /[^\x00-\u02ff\u2026]/.test(each); });
    var chars = wide ? 9 : 18;
    if (longest <= chars) return;
    var parts = [];
    for (var at = 0; at < longest; at += chars) parts.push("slice(datum.label, " + at + ", " + (at + chars) + ")");
    y.axis.labelExpr = "length(datum.label) > " + chars + " ? [" + parts.join(", ") + "] : datum.label";
    y.axis.labelLimit = 0;
    view.height.step = Math.max(view.height.step, y.axis.labelLineHeight * parts.length + 4);
  }

  function draw(figure) {
    var live = figure.querySelector(".live");
    var room = figure.clientWidth;
    if (!room || figure.dataset.room === String(room)) return;
    figure.dataset.room = String(room);
    var options = { mode: "vega-lite", ast: true, renderer: "svg", actions: false, tooltip: { theme: "kdump" } };
    embed(live, fitted(figure, room), options).then(function (made) {
      if (figure.view) figure.view.finalize();
      figure.view = made.view;
      figure.classList.add("is-live");
    }).catch(function (error) {
      console.error("kdump: " + figure.id + ": " + error);
    });
  }

  var figures = Array.prototype.slice.call(document.querySelectorAll("figure.chart"));
  var seen = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) { if (entry.isIntersecting) draw(entry.target); });
  }, { rootMargin: "300px" });
  figures.forEach(function (figure) { seen.observe(figure); });

  var waiting;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      figures.forEach(function (figure) { if (figure.classList.contains("is-live")) draw(figure); });
    }, 250);
  });

  /* Paper folds nothing away. */
  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.prototype.filter.call(document.querySelectorAll("details:not(.info):not(.infos)"), function (each) { return !each.open; });
    opened.forEach(function (each) { each.open = true; });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (each) { each.open = false; });
  });

  /* A link to a finding opens it. */
  function open() {
    var id = decodeURIComponent(location.hash.slice(1));
    var found = id && document.getElementById(id);
    for (var each = found; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    if (found) found.scrollIntoView();
  }
  window.addEventListener("hashchange", open);
  open();
})();
