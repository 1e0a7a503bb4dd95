// Wakes every slider that sleeps. Frames come from the figure itself, or, in JupyterLab as `make lab` starts it, from the kernel.
document.querySelectorAll("figure.explore:not([data-awake])").forEach(function (figure) {
  figure.dataset.awake = "yes";
  var stored = JSON.parse(figure.querySelector("script").textContent);
  var picture = figure.querySelector("img"), title = figure.querySelector("figcaption span");
  var note = figure.querySelector(".explore-note"), start = picture.src;
  var sliders = Array.from(figure.querySelectorAll("input")), shown = figure.querySelectorAll("output");
  var buttons = figure.querySelectorAll("button"), timer = null;
  var labels, ask; // `ask` shows the picture at a place, now or when it has come

  function places() { return sliders.map(function (slider) { return Number(slider.value); }); }

  // Title, readout and description change with the picture and never before it.
  function show(at, seen) {
    picture.src = seen.src;
    picture.alt = seen.alt;
    title.textContent = seen.title;
    sliders.forEach(function (slider, i) {
      shown[i].textContent = labels[i][at[i]];
      slider.setAttribute("aria-valuetext", labels[i][at[i]]);
    });
  }

  function range(names, first, source) {
    labels = names;
    ask = source;
    stop();
    sliders.forEach(function (slider, i) {
      slider.max = names[i].length - 1;
      slider.value = first[i];
    });
  }

  function useFrames() {
    figure.dataset.source = stored.frames ? "frames" : "none";
    sliders.concat(Array.from(buttons)).forEach(function (control) { control.disabled = !stored.frames; });
    note.textContent = stored.frames ? "" : "A still picture: run this cell, and its sliders move.";
    if (!stored.frames) return;
    picture.style.background = "url(" + start + ") 0 0 / 100% 100%"; // frames hold what differs from the first
    range(stored.labels, stored.first, function (at) {
      var k = at.reduce(function (sum, place, i) { return sum * labels[i].length + place; }, 0);
      show(at, { src: stored.frames[k], alt: stored.alts[k], title: stored.titles[k] });
    });
    ask(places());
  }

  function useKernel(comm, names, first) {
    var asked = null, wanted = null;
    figure.dataset.source = "kernel";
    sliders.concat(Array.from(buttons)).forEach(function (control) { control.disabled = false; });
    note.textContent = "Live: your kernel draws it.";
    range(names, first, function (at) {
      wanted = at;
      if (asked) return; // one question at a time; of those that wait only the last counts
      asked = wanted;
      wanted = null;
      comm.send({ at: asked });
    });
    comm.onMsg = function (message) {
      var seen = message.content.data, at = asked;
      asked = null;
      note.textContent = seen.problem || "Live: your kernel draws it.";
      if (!seen.problem) {
        picture.style.background = "none";
        show(at, seen);
      }
      if (wanted) ask(wanted);
    };
    ask(places());
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    buttons.forEach(function (button) { button.textContent = "▶"; });
  }

  figure.addEventListener("keydown", function (event) { event.stopPropagation(); }); // Lab would take the arrow keys
  sliders.forEach(function (slider, i) {
    slider.addEventListener("input", function () { stop(); ask(places()); });
    buttons[i].addEventListener("click", function () {
      if (timer) return stop();
      if (slider.value === slider.max) slider.value = 0;
      buttons[i].textContent = "⏸";
      timer = setInterval(function () {
        slider.value = Number(slider.value) + 1;
        ask(places());
        if (slider.value === slider.max) stop();
      }, 400);
    });
  });

  // A kernel that did not run this cell closes the line at once, and one that restarts or dies is noticed.
  async function connect() {
    var panels = window.jupyterapp ? Array.from(window.jupyterapp.shell.widgets("main")) : [];
    var panel = panels.find(function (one) { return one.sessionContext && one.node.contains(figure); });
    if (!panel) return;
    await panel.sessionContext.ready;
    var kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
    if (!kernel) return;
    var usual = kernel.commsOverSubshells;
    kernel.commsOverSubshells = "disabled"; // matplotlib is not made for two threads
    var comm = kernel.createComm("bilevel_book.sliders");
    kernel.commsOverSubshells = usual;
    function leave() { if (figure.dataset.source === "kernel") useFrames(); }
    comm.onClose = leave;
    comm.onMsg = function (message) { useKernel(comm, message.content.data.labels, message.content.data.first); };
    kernel.statusChanged.connect(function (_, status) { if (/restarting|dead|terminating/.test(status)) leave(); });
    panel.sessionContext.kernelChanged.connect(leave);
    comm.open({ key: figure.dataset.live });
  }

  useFrames();
  if (figure.dataset.live) connect();
});
