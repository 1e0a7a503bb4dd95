// What is wider than its place. A formula shrinks a little; a table of words is laid out as cards; whatever still hides a
// part says at which side (data-more), and custom.css fades it there. A full stop stays on the line of its formula.
(function () {
  var SMALLEST = 0.75; // of a formula's size: below that it is better to scroll

  function hidden(block) { return block.scrollWidth - block.clientWidth > 1; }

  function shrink(formula) {
    var usual = formula.dataset.usual || (formula.dataset.usual = formula.style.fontSize || "100%");
    formula.style.fontSize = usual;
    if (hidden(formula)) formula.style.fontSize = parseFloat(usual) * Math.max(SMALLEST, 0.99 * formula.clientWidth / formula.scrollWidth) + "%";
  }

  function lay(table) {
    table.classList.remove("cards");
    if (!hidden(table.parentElement)) return;
    var names = Array.from(table.querySelectorAll("thead th"), function (cell) { return cell.textContent; });
    table.querySelectorAll("tbody tr").forEach(function (row) {
      Array.from(row.cells).forEach(function (cell, i) { cell.dataset.name = names[i] || ""; });
    });
    table.classList.add("cards");
  }

  function hint(block) {
    var left = block.scrollLeft > 1, right = block.scrollWidth - block.clientWidth - block.scrollLeft > 1;
    block.dataset.more = left && right ? "both" : left ? "left" : right ? "right" : "";
    if (block.dataset.more && block.tabIndex < 0) block.tabIndex = 0; // the keyboard scrolls it, too
  }

  function close(formula) {
    var next = formula.nextSibling, sign = next && next.nodeType === Node.TEXT_NODE && /^[.,;:!?)\]”’]+/.exec(next.data);
    if (!sign) return;
    var line = document.createElement("span");
    line.style.whiteSpace = "nowrap";
    next.splitText(sign[0].length);
    formula.before(line);
    line.append(formula, next);
  }

  function look(block) {
    if (block.matches("mjx-container")) shrink(block);
    if (block.matches(".pst-scrollable-table-container")) block.querySelectorAll("table").forEach(lay);
    hint(block);
  }

  async function start() {
    if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
    document.querySelectorAll(".bd-article span.math").forEach(close);
    var seen = new ResizeObserver(function (entries) { // also when a fold opens; a frame later, or it would see itself
      requestAnimationFrame(function () { entries.forEach(function (entry) { look(entry.target); }); });
    });
    document.querySelectorAll(".bd-article :is(pre, mjx-container[display], blockquote, .text_html, .pst-scrollable-table-container)").forEach(function (block) {
      look(block);
      seen.observe(block);
      block.addEventListener("scroll", function () { hint(block); }, { passive: true });
    });
    document.documentElement.dataset.wide = "seen";
  }

  window.addEventListener("load", start);
})();
