/* Moves and zooms the charts, and shows the numbers at the pointer. Without it, the pictures are the same. */
(function () {
  "use strict";
  document.documentElement.classList.add("js");
  var tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";

  /* What a <title> says, at once, instead of the browser's own after a while. */
  document.querySelectorAll(".chart title").forEach(function (each) {
    each.parentNode.setAttribute("data-tip", each.textContent);
    each.remove();
  });
  document.addEventListener("pointermove", function (event) {
    var at = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.textContent = at && !event.buttons ? at.getAttribute("data-tip") : "";
    if (!at) return;
    var above = event.clientY - tip.offsetHeight - 8, below = event.clientY + 16;
    tip.style.left = Math.max(0, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (below + tip.offsetHeight > window.innerHeight ? above : below) + "px";
  });

  function label(value, unit) {
    if (unit === "time") return new Date(value).toISOString().replace("T", " ").slice(0, 19);
    return unit === "percent" ? value.toFixed(2) : Math.round(value).toLocaleString("en");
  }

  /* Shows the part of each plot that begins at `from` and is as wide as `size`, of 1, and relabels the axes. */
  function show(figure, from, size) {
    size = Math.min(1, Math.max(size, 1e-5));
    from = Math.min(1 - size, Math.max(0, from));
    figure.from = from;
    figure.size = size;
    figure.classList.toggle("is-zoomed", size < 1);
    figure.querySelectorAll("svg.view").forEach(function (view) {
      var width = view.width.baseVal.value, height = view.height.baseVal.value;
      view.setAttribute("viewBox", [from * width, 0, size * width, height].join(" "));
    });
    figure.querySelectorAll("g.axis").forEach(function (axis) {
      if (!axis.whole) axis.whole = Array.prototype.slice.call(axis.children);
      var view = axis.previousElementSibling;
      while (!view.matches("svg.view")) view = view.previousElementSibling;
      var first = Number(view.dataset.first), span = Number(view.dataset.last) - first;
      axis.replaceChildren.apply(axis, size === 1 ? axis.whole : []);
      for (var part = 0; size < 1 && axis.whole.length && part <= 4; part += 1) {
        var text = axis.appendChild(axis.whole[0].cloneNode());
        text.setAttribute("x", view.x.baseVal.value + part / 4 * view.width.baseVal.value);
        text.setAttribute("text-anchor", part === 4 ? "end" : part ? "middle" : "start");
        text.textContent = label(first + (from + part / 4 * size) * span, view.dataset.unit);
      }
    });
  }

  document.querySelectorAll("figure.chart").forEach(function (figure) {
    var held = null;
    show(figure, 0, 1);
    figure.querySelectorAll("svg.view").forEach(function (view) {
      function share(event) {
        var box = view.getBoundingClientRect();
        return (event.clientX - box.left) / box.width;
      }
      view.addEventListener("wheel", function (event) {
        if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return;
        event.preventDefault();
        var size = Math.min(1, figure.size * Math.exp((event.deltaY || event.deltaX) / 300));
        show(figure, figure.from + share(event) * (figure.size - size), size);
      }, { passive: false });
      view.addEventListener("pointerdown", function (event) {
        held = { at: share(event), from: figure.from };
      });
      view.addEventListener("pointermove", function (event) {
        if (!held || !event.buttons) return;
        if (!view.hasPointerCapture(event.pointerId)) view.setPointerCapture(event.pointerId);
        show(figure, held.from - (share(event) - held.at) * figure.size, figure.size);
      });
      view.addEventListener("pointerup", function () { held = null; });
      view.addEventListener("dblclick", function () { show(figure, 0, 1); });
    });
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
