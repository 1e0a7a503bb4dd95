// What all live widgets share: dials from the traits, panels with axes, dragging, the caption, the address, the buttons.
// Drawn as SVG by hand: it takes its colours from the page's CSS, its marks can be focused, and it prints.

const PLACES = 240; // of a slider: about one a pixel
const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, parent = null, text = "") {
  const made = ["svg", "g", "path", "circle", "ellipse", "line", "text", "rect", "clipPath", "image"].includes(tag)
    ? document.createElementNS(SVG, tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** A number for readers: 0.125, −3.2, 4·10⁻⁷. */
export function show(value, digits = 3) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "undefined";
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
    const [front, back] = size.toExponential(Math.max(0, digits - 2)).split("e");
    const raised = [...String(Number(back))].map((c) => RAISED[c]).join("");
    return sign + (Number(front) === 1 ? "10" + raised : Number(front) + "·10" + raised);
  }
  return sign + String(Number(size.toPrecision(digits)));
}

export const range = (n, from = 0, to = n - 1) =>
  Array.from({ length: n }, (_, i) => (n === 1 ? from : from + ((to - from) * i) / (n - 1)));

/** As controls give it, since addresses and lines of Python repeat it. */
export const rounded = (value) => Number(value.toPrecision(3));

export const clip = (value, [low, high]) => Math.min(Math.max(value, Math.min(low, high)), Math.max(low, high));

function ticks(ends, log, room) {
  const low = Math.min(...ends), high = Math.max(...ends);
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.ceil((last - first + 1) / room));
    return range(Math.max(0, last - first + 1), first, last).filter((k) => k % every === 0).map((k) => 10 ** k);
  }
  const rough = (high - low) / room, ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * [1, 2, 5, 10].find((k) => k * ten >= rough), first = Math.ceil(low / step - 1e-9);
  return range(Math.floor(high / step + 1e-9) - first + 1).map((k) => Number(((first + k) * step).toPrecision(12)));
}

/** Groups of radio buttons and clips are known by name to the whole page. */
const unique = () => `live-${Math.random().toString(36).slice(2)}`;

/** One pair of axes. What it draws is said anew at each update; elements that are there already are used again. */
class Panel {
  constructor(stage, spec) {
    Object.assign(this, { height: 230, log: [], blank: false, xlabel: "", ylabel: "" }, spec, { stage, handles: [] });
    this.svg = element("svg", { class: "live-panel", "aria-label": spec.label }, stage.panels);
    this.svg.setAttribute("role", "img");
    const inside = unique();
    this.window = element("rect", {}, element("clipPath", { id: inside }, this.svg));
    this.axes = element("g", { class: "live-axes" }, this.svg);
    this.marks = element("g", { "clip-path": `url(#${inside})` }, this.svg);
    this.words = element("g", {}, this.svg);
    this.grips = element("g", {}, this.svg);
    this.svg.addEventListener("pointerdown", (event) => this.press(event));
    const hold = (event) => this.held && event.preventDefault(); // touch-action does nothing inside an SVG: the page would scroll
    this.svg.addEventListener("touchstart", hold, { passive: false });
    this.resize(640, this.height);  // until the page says how much room there is, which a hidden slide never does
  }

  /** Lay out in the width there is. */
  resize(width, height) {
    this.size = [Math.max(120, width), height];
    this.box = { left: this.blank ? 6 : 38, right: this.size[0] - 8, top: 22, bottom: height - (this.xlabel ? 34 : 20) };
    if (this.equal) this.keep_equal();
    this.svg.setAttribute("viewBox", `0 0 ${this.size.join(" ")}`);
    this.svg.style.height = `${height}px`;
    const { left, right, top, bottom } = this.box;
    for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) {
      this.window.setAttribute(name, value);
    }
    this.drawn = null;
  }

  /** A unit of x as long as a unit of y: the axis with room to spare shows more. */
  keep_equal() {
    const { left, right, top, bottom } = this.box, [x, y] = this.equal;
    const unit = Math.min((right - left) / (x[1] - x[0]), (bottom - top) / (y[1] - y[0]));
    const around = ([low, high], room) => [(low + high - room / unit) / 2, (low + high + room / unit) / 2];
    this.x = around(x, right - left);
    this.y = around(y, bottom - top);
  }

  share(value, axis) {
    const [low, high] = this[axis];
    if (!this.log.includes(axis)) return (value - low) / (high - low);
    return Math.log(Math.max(value, 1e-300) / low) / Math.log(high / low);
  }

  X(x) {
    return clip(this.box.left + this.share(x, "x") * (this.box.right - this.box.left), [-1e4, 1e4]);
  }

  Y(y) {
    return clip(this.box.bottom - this.share(y, "y") * (this.box.bottom - this.box.top), [-1e4, 1e4]);
  }

  /** The point in the panel's numbers at a place on the screen. */
  point({ clientX, clientY }) {
    const seen = this.svg.getBoundingClientRect(), { left, right, top, bottom } = this.box;
    const back = (share, axis) => {
      const [low, high] = this[axis], inside = clip(share, [0, 1]);
      return rounded(this.log.includes(axis) ? low * (high / low) ** inside : low + (high - low) * inside);
    };
    const px = ((clientX - seen.left) * this.size[0]) / seen.width, py = ((clientY - seen.top) * this.size[1]) / seen.height;
    return [back((px - left) / (right - left), "x"), back((bottom - py) / (bottom - top), "y")];
  }

  begin() {
    this.count = { marks: 0, words: 0 };
    const frame = JSON.stringify([this.x, this.y, this.box, this.title]);
    if (frame !== this.drawn) this.draw_axes();
    this.drawn = frame;
  }

  draw_axes() {
    const { left, right, top, bottom } = this.box;
    this.axes.replaceChildren();
    for (const x of ticks(this.x, this.log.includes("x"), Math.max(3, (right - left) / 75))) {
      element("line", { class: "live-grid", x1: this.X(x), x2: this.X(x), y1: top, y2: bottom }, this.axes);
      element("text", { x: this.X(x), y: bottom + 14, "text-anchor": "middle" }, this.axes, show(x));
    }
    for (const y of this.blank ? [] : ticks(this.y, this.log.includes("y"), Math.max(4, (bottom - top) / 36))) {
      element("line", { class: "live-grid", x1: left, x2: right, y1: this.Y(y), y2: this.Y(y) }, this.axes);
      element("text", { x: left - 5, y: this.Y(y) + 4, "text-anchor": "end" }, this.axes, show(y));
    }
    element("text", { class: "live-axis", x: 2, y: 13 }, this.axes, this.ylabel);
    element("text", { class: "live-axis", x: right, y: this.size[1] - 4, "text-anchor": "end" }, this.axes, this.xlabel);
  }

  /** The next element of a layer, of that tag. */
  next(layer, tag, attributes) {
    const group = this[layer];
    let mark = group.children[this.count[layer]++];
    if (!mark || mark.tagName !== tag) {
      const fresh = element(tag);
      if (mark) mark.replaceWith(fresh);
      else group.append(fresh);
      mark = fresh;
    }
    for (const old of [...mark.attributes]) if (!(old.name in attributes)) mark.removeAttribute(old.name);
    for (const [name, value] of Object.entries(attributes)) mark.setAttribute(name, value);
    return mark;
  }

  end() {
    for (const layer of ["marks", "words"]) {
      while (this[layer].children.length > this.count[layer]) this[layer].lastChild.remove();
    }
  }

  line(xs, ys, look, closed = false) {
    let d = "", pen = "M";
    for (let i = 0; i < xs.length; i++) {
      if (!Number.isFinite(xs[i]) || !Number.isFinite(ys[i])) pen = "M";
      else {
        d += `${pen}${this.X(xs[i]).toFixed(1)} ${this.Y(ys[i]).toFixed(1)}`;
        pen = "L";
      }
    }
    this.next("marks", "path", { d: d + (closed ? "Z" : ""), class: look });
  }

  /** Between two curves. */
  area(xs, low, high, look) {
    this.line([...xs, ...[...xs].reverse()], [...low, ...[...high].reverse()], look, true);
  }

  dot(x, y, look, r = 5) {
    if (Number.isFinite(x) && Number.isFinite(y)) {
      this.next("marks", "circle", { cx: this.X(x), cy: this.Y(y), r, class: look });
    }
  }

  /** An ellipse with axes along x and y. */
  ellipse(x, y, rx, ry, look) {
    const across = Math.abs(this.X(x + rx) - this.X(x)), up = Math.abs(this.Y(y + ry) - this.Y(y));
    this.next("marks", "ellipse", { cx: this.X(x), cy: this.Y(y), rx: across, ry: up, class: look });
  }

  arrow(x, y, to_x, to_y, look) {
    const [a, b, c, d] = [this.X(x), this.Y(y), this.X(to_x), this.Y(to_y)], long = Math.hypot(c - a, d - b);
    if (!(long > 0.5)) return;
    const head = Math.min(10, long), [u, w] = [((c - a) / long) * head, ((d - b) / long) * head];
    const sides = `M${c - u + w / 2} ${d - w - u / 2}L${c} ${d}L${c - u - w / 2} ${d - w + u / 2}`;
    this.next("marks", "path", { d: `M${a} ${b}L${c} ${d}${sides}`, class: look });
  }

  /** Words at a point, kept inside the panel; `shift` is in pixels. */
  text(x, y, words, look, [dx, dy] = [0, 0], anchor = "start") {
    const { left, right, top, bottom } = this.box, mark = this.next("words", "text", { class: look });
    mark.textContent = words;
    const long = mark.getComputedTextLength(), from = this.X(x) + dx - (anchor === "end" ? long : 0);
    mark.setAttribute("x", clip(from, [left, Math.max(left, right - long)]));
    mark.setAttribute("y", clip(this.Y(y) + dy, [top + 10, bottom - 3]));
  }

  /** Names of lines, [words, look], from right to left above the picture. */
  legend(names) {
    let right = this.box.right;
    for (const [words, look] of names) {
      const mark = this.next("words", "text", { x: right, y: 13, class: look, "text-anchor": "end" });
      mark.textContent = words;
      right -= 10 + mark.getComputedTextLength();
    }
  }

  /** A point that mouse, finger and arrow keys move: `at(s)` says where it is, `move(x, y, s)` which settings that makes. */
  handle({ label, at, move, words, look = "live-start" }) {
    const grip = element("g", { class: `live-handle ${look}`, tabindex: 0, role: "slider", "aria-label": label }, this.grips);
    element("circle", { class: "live-reach", r: 22 }, grip);
    element("circle", { class: "live-ring", r: 12 }, grip);
    element("circle", { class: "live-core", r: 7 }, grip);
    const handle = { grip, at, move, words };
    this.svg.setAttribute("role", "group");
    this.handles.push(handle);
    grip.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way) return;
      event.preventDefault();
      const fine = event.shiftKey ? 0.002 : 0.02, [x, y] = at(this.stage.settings());
      const go = (value, axis, step) => {
        const [low, high] = this[axis];
        const next = this.log.includes(axis) ? value * (high / low) ** (step * fine) : value + (high - low) * step * fine;
        return rounded(clip(next, [low, high]));
      };
      this.stage.change(move(go(x, "x", way[0]), go(y, "y", way[1]), this.stage.settings()), true);
    });
  }

  place_handles(s) {
    for (const { grip, at, words } of this.handles) {
      const [x, y] = at(s);
      const { left, right, top, bottom } = this.box, place = [clip(this.X(x), [left, right]), clip(this.Y(y), [top, bottom])];
      grip.setAttribute("transform", `translate(${place.map((part) => part.toFixed(1)).join(" ")})`);
      grip.setAttribute("aria-valuenow", Number(x.toPrecision(4)));
      grip.setAttribute("aria-valuetext", words ? words(s) : `${show(x)}, ${show(y)}`);
    }
  }

  /** A finger takes the handle that it touches, so that a page still scrolls; a mouse may press anywhere. */
  press(event) {
    if (!this.handles.length || event.button) return;
    const near = ({ at }) => {
      const [x, y] = at(this.stage.settings()), p = this.svg.getBoundingClientRect();
      return Math.hypot(event.clientX - p.left - this.X(x), event.clientY - p.top - this.Y(y));
    };
    const handle = [...this.handles].sort((a, b) => near(a) - near(b))[0];
    if (event.pointerType !== "mouse" && near(handle) > 26) return;
    event.preventDefault();
    this.held = true;
    handle.grip.focus({ preventScroll: true });
    this.svg.setPointerCapture(event.pointerId);
    this.stage.busy(true);
    const follow = (moved) => this.stage.change(handle.move(...this.point(moved), this.stage.settings()));
    const leave = () => {
      this.svg.removeEventListener("pointermove", follow);
      this.held = false;
      this.stage.busy(false);
    };
    this.svg.addEventListener("pointermove", follow);
    this.svg.addEventListener("pointerup", leave, { once: true });
    this.svg.addEventListener("pointercancel", leave, { once: true });
    follow(event);
  }
}

class Stage {
  constructor(name, { model, el }) {
    Object.assign(this, { name, model, dials: model.get("dials"), made: [] });
    this.root = element("figure", { class: "live", "data-live": name }, el);
    this.root.model = model;
    this.root.addEventListener("keydown", (event) => event.stopPropagation()); // Lab would take the arrow keys
    this.caption = element("figcaption", { "aria-live": "polite" }, this.root);
    const body = element("div", { class: "live-body" }, this.root);
    this.panels = element("div", { class: "live-panels" }, body);
    this.controls = element("div", { class: "live-controls" }, body);
    this.note = element("p", { class: "live-note", role: "status" }, this.root);
    this.inputs = this.dials.filter((dial) => dial.shown).map((dial) => this.control(dial));
    this.buttons = element("div", { class: "live-buttons" }, this.controls);
  }

  panel(spec) {
    this.made.push(new Panel(this, spec));
    return this.made.at(-1);
  }

  // ---- settings

  /** The allowed value nearest to a given one; nothing where it is not a value at all. */
  nearest(dial, given) {
    if (dial.options) return dial.options.includes(given) ? given : undefined;
    const number = typeof given === "string" && !given.trim() ? NaN : Number(given);
    if (Number.isNaN(number)) return undefined;
    return clip(dial.whole ? Math.round(clip(number, [-1e15, 1e15])) : number, [dial.min, dial.max]);
  }

  settings() {
    const found = {};
    for (const dial of this.dials) {
      const value = this.nearest(dial, this.model.get(dial.name));
      found[dial.name] = value === undefined ? dial.start : value;
    }
    return { ...found, ...this.shown };
  }

  /** Take up settings, each as near as allowed, and draw once; `last` tells the kernel. */
  change(settings, last = false) {
    this.quiet = true;
    for (const dial of this.dials) {
      const value = dial.name in settings ? this.nearest(dial, settings[dial.name]) : undefined;
      if (value !== undefined) this.model.set(dial.name, value);
    }
    this.quiet = false;
    this.update();
    if (last) this.model.save_changes();
  }

  /** Nobody is told of every place that a drag passes, neither a reader who listens nor the kernel. */
  busy(yes) {
    this.caption.setAttribute("aria-busy", yes);
    this.root.classList.toggle("live-busy", yes);
    if (!yes) this.model.save_changes();
  }

  /** Say, to whoever takes its picture, that a widget goes on by itself. */
  working(yes) {
    if (yes) this.root.dataset.working = "yes";
    else delete this.root.dataset.working;
  }

  update() {
    if (!this.draw || this.quiet) return;
    this.quiet = true;
    const s = this.settings();
    for (const dial of this.dials) if (!this.shown && this.model.get(dial.name) !== s[dial.name]) this.model.set(dial.name, s[dial.name]);
    for (const panel of this.made) panel.begin();
    this.caption.textContent = this.draw(s);
    for (const panel of this.made) {
      panel.end();
      panel.place_handles(s);
    }
    for (const follow of this.inputs) follow(s);
    if (this.repeat) this.repeat(s);
    this.quiet = false;
  }

  // ---- controls

  control(dial) {
    if (dial.options) return this.choice(dial);
    const row = element("label", { class: "live-dial" }, this.controls);
    const head = element("span", {}, row, dial.label), shown = element("output", {}, row);
    const input = element("input", { type: "range", name: dial.name, min: 0, max: PLACES, step: 1 }, row);
    const small = dial.whole && dial.max - dial.min <= 1000;
    dial.step ||= 1;
    if (small) Object.assign(input, { min: dial.min, max: dial.max, step: dial.step });
    const to_place = (value) => {
      if (small) return value;
      const share = dial.log ? Math.log(value / dial.min) / Math.log(dial.max / dial.min) : (value - dial.min) / (dial.max - dial.min);
      return Math.round(PLACES * share);
    };
    const to_value = (place) => {
      if (small) return place;
      const share = place / PLACES;
      const value = dial.log ? dial.min * (dial.max / dial.min) ** share : dial.min + (dial.max - dial.min) * share;
      return rounded(value);
    };
    input.addEventListener("input", () => this.change({ [dial.name]: to_value(Number(input.value)) }));
    input.addEventListener("change", () => this.model.save_changes());
    return (s) => {
      const value = s[dial.name], unused = this.unused ? this.unused(s).includes(dial.name) : false;
      if (Number(input.value) !== to_place(value)) input.value = to_place(value);
      shown.textContent = dial.labels ? dial.labels[value] : dial.whole ? String(value) : show(value);
      input.setAttribute("aria-valuetext", shown.textContent);
      input.disabled = unused;
      row.classList.toggle("live-unused", unused);
      head.title = unused ? `${dial.name} is not an option of this method` : "";
    };
  }

  choice(dial) {
    const box = element("fieldset", { class: "live-choice" }, this.controls);
    element("legend", {}, box, dial.label);
    const group = unique();
    const radios = dial.options.map((option) => {
      const row = element("label", { "data-option": option }, box);
      const radio = element("input", { type: "radio", name: group, value: option }, row);
      element("span", {}, row, option);
      radio.addEventListener("change", () => this.change({ [dial.name]: option }, true));
      return radio;
    });
    return (s) => radios.forEach((radio) => (radio.checked = radio.value === s[dial.name]));
  }

  button(words, act, title = "") {
    const made = element("button", { type: "button", title }, this.buttons, words);
    made.addEventListener("click", act);
    return made;
  }

  say(words) {
    this.note.textContent = words;
  }

  /** Run `name` from its least value to where it stands, or through all its stored places; again stops. */
  play(name, words = "Play", seconds = 5) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    let running = null;
    const dial = this.dials.find((one) => one.name === name);
    const stop = () => {
      cancelAnimationFrame(running);
      running = this.shown = null;
      button.textContent = `▶ ${words}`;
      this.update();
    };
    const button = this.button(`▶ ${words}`, () => {
      if (running) return stop();
      const first = dial.min, last = dial.labels ? dial.max : this.settings()[name], begun = performance.now();
      button.textContent = `⏹ ${words}`;
      const frame = (now) => {
        const share = (now - begun) / (1000 * seconds);
        if (share >= 1 || !this.root.isConnected) return stop();
        const at = dial.labels ? (last + 1) * share : (first + 1) * ((last + 1) / (first + 1)) ** share - 1;
        this.shown = { [name]: dial.step * Math.floor(at / dial.step) };
        this.update();
        running = requestAnimationFrame(frame);
      };
      running = requestAnimationFrame(frame);
    });
    this.root.addEventListener("input", () => running && stop());
  }

  /** The lines of Python that repeat what is seen. */
  python(lines) {
    const code = element("pre", { class: "live-code", hidden: "", tabindex: 0 }, this.root), words = "These lines repeat the run in the library:";
    this.repeat = (s) => {
      if (code.hidden || code.textContent === lines(s)) return;
      code.textContent = lines(s);
      this.say(words);
    };
    this.button("Copy as Python", async () => {
      code.hidden = false;
      this.repeat(this.settings());
      try {
        await navigator.clipboard.writeText(code.textContent);
        this.say(`Copied. ${words}`);
      } catch {
        this.say(words);
      }
    });
  }

  // ---- address: #valley.delta=0.3&valley.seed=7

  address() {
    const s = this.settings(), changed = this.dials.filter((dial) => s[dial.name] !== dial.start);
    const parts = changed.map((dial) => `${this.name}.${dial.name}=${encodeURIComponent(s[dial.name])}`);
    return "#" + (parts.join("&") || `${this.name}`);
  }

  read_address() {
    const wrong = [], taken = {};
    for (const part of location.hash.slice(1).split("&")) {
      const [key, given = ""] = part.split("="), [name, trait] = key.split(".");
      if (name !== this.name || !trait) continue;
      const dial = this.dials.find((one) => one.name === trait);
      let value;
      try {
        value = dial && this.nearest(dial, decodeURIComponent(given));
      } catch {
        value = undefined; // a broken escape
      }
      if (value === undefined) wrong.push(part.slice(0, 60));
      else taken[trait] = value;
      if (value !== undefined && !dial.options && Number(given) !== value) wrong.push(`${trait} = ${given.slice(0, 20)}`);
    }
    if (!Object.keys(taken).length && !wrong.length) return location.hash === `#${this.name}`;
    this.change(taken);
    if (wrong.length) this.say(`The address asks for what this picture does not have (${wrong.join(", ")}); it shows the nearest.`);
    return true;
  }

  async link() {
    history.replaceState(null, "", this.address());
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The address of this picture is copied.");
    } catch {
      this.say("The address bar has the address of this picture.");
    }
  }

  finish() {
    const start = () => this.change(Object.fromEntries(this.dials.map((dial) => [dial.name, dial.start])), true);
    this.button("Reset", () => {
      this.say("");
      if (this.restart) this.restart();
      start();
    });
    const on_page = this.root.closest("[data-widget]"); // elsewhere a notebook has no address of its own
    if (on_page) this.button("Link", () => this.link(), "The address of this picture, with its settings");
    const focused = this.root.querySelectorAll("input, button, [tabindex]"); // Notebook would take them, too, and earlier
    for (const one of focused) one.setAttribute("data-lm-suppress-shortcuts", "true");
    const heard = () => this.update();
    for (const dial of this.dials) this.model.on(`change:${dial.name}`, heard);
    const sizes = new ResizeObserver(() => this.fit());
    sizes.observe(this.panels);
    this.fit();
    const arrive = () => this.read_address() && this.root.scrollIntoView({ block: "center" });
    if (on_page) {
      arrive();
      window.addEventListener("hashchange", arrive);
    }
    return () => {
      sizes.disconnect();
      window.removeEventListener("hashchange", arrive);
      if (this.leave) this.leave();
      for (const dial of this.dials) this.model.off(`change:${dial.name}`, heard);
    };
  }

  fit() {
    const width = this.panels.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    const phone = width < 420;
    this.panels.classList.toggle("live-beside", !phone && this.made.some((panel) => panel.half));
    for (const panel of this.made) {
      panel.svg.classList.toggle("live-half", !!panel.half);
      panel.resize(panel.half && !phone ? (width - 12) / 2 : width, Math.round(panel.height * (phone ? 0.82 : 1)));
    }
    this.update();
  }
}

/** The module's default export: `build(stage)` makes panels and returns what draws them and says what is seen. */
export function live(name, build) {
  return {
    render(given) {
      const stage = new Stage(given.model.get("known_as") || name, given);
      stage.draw = build(stage);
      return stage.finish();
    },
  };
}
