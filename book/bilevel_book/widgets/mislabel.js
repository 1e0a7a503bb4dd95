// Chapter 1 and the front page: 200 digits. Choose one, give it a wrong label, and see its weight fall while FdeHBO runs.

import { METHODS, init, zeros } from "./core.js";
import { live, range, show } from "./stage.js";

const SIDE = 14, PIXELS = SIDE * SIDE, FEATURES = PIXELS + 1, CLASSES = 10;
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** Sixteen shades of grey, two pixels a byte; the last feature of each image is a constant. */
function features(packed, n) {
  const bytes = atob(packed), X = zeros(n * FEATURES);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < PIXELS; j++) {
      const byte = bytes.charCodeAt((i * PIXELS + j) >> 1);
      X[i * FEATURES + j] = (j % 2 ? byte & 15 : byte >> 4) / 15;
    }
    X[i * FEATURES + PIXELS] = 1;
  }
  return X;
}

/** f = mean CE on trusted digits;  g = mean of sigmoid(x_i) CE_i + C ||y||^2 on all others; y is a linear classifier. */
export class Digits {
  constructor(made) {
    const n = made.given.length;
    Object.assign(this, { n, given: [...made.given], trusted_labels: made.trusted_labels, C: made.C });
    this.X = features(made.pixels, n);
    this.T = features(made.trusted, made.trusted_labels.length);
    this.relabel();
  }

  relabel() {
    this.seen = new WeakMap(); // what a classifier says of the digits, for each y
  }

  start() {
    return { x: zeros(this.n), y: zeros(FEATURES * CLASSES) };
  }

  full() {
    return { upper: 0, lower: 0 };
  }

  /** The cross-entropies of y on some digits, and its probabilities. */
  answers(X, labels, y) {
    const n = labels.length, P = zeros(n * CLASSES), losses = zeros(n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < FEATURES; j++) {
        const pixel = X[i * FEATURES + j];
        if (pixel) for (let k = 0; k < CLASSES; k++) P[i * CLASSES + k] += pixel * y[j * CLASSES + k];
      }
      const own = P.subarray(i * CLASSES, (i + 1) * CLASSES), top = Math.max(...own);
      const log_sum = top + Math.log(own.reduce((sum, z) => sum + Math.exp(z - top), 0));
      losses[i] = log_sum - own[labels[i]];
      for (let k = 0; k < CLASSES; k++) own[k] = Math.exp(own[k] - log_sum);
    }
    return { P, losses };
  }

  lower_answers(y) {
    if (!this.seen.has(y)) this.seen.set(y, this.answers(this.X, this.given, y));
    return this.seen.get(y);
  }

  /** sum_i w_i (p_i - e_label) pixels_i. */
  slope(X, labels, P, weights) {
    const d = zeros(FEATURES * CLASSES);
    for (let i = 0; i < labels.length; i++) {
      const off = Array.from({ length: CLASSES }, (_, k) => weights[i] * (P[i * CLASSES + k] - (k === labels[i] ? 1 : 0)));
      for (let j = 0; j < FEATURES; j++) {
        const pixel = X[i * FEATURES + j];
        if (pixel) for (let k = 0; k < CLASSES; k++) d[j * CLASSES + k] += pixel * off[k];
      }
    }
    return d;
  }

  upper_x() {
    return zeros(this.n);
  }

  upper_y(x, y) {
    const m = this.trusted_labels.length, { P } = this.answers(this.T, this.trusted_labels, y);
    return this.slope(this.T, this.trusted_labels, P, new Float64Array(m).fill(1 / m));
  }

  lower_x(x, y, batch, weight = 1) {
    const { losses } = this.lower_answers(y);
    return x.map((one, i) => (weight * sigmoid(one) * (1 - sigmoid(one)) * losses[i]) / this.n);
  }

  lower_y(x, y, batch, weight = 1) {
    const d = this.slope(this.X, this.given, this.lower_answers(y).P, x.map((one) => (weight * sigmoid(one)) / this.n));
    return d.map((part, j) => part + weight * 2 * this.C * y[j]);
  }
}

export default live("mislabel", (stage) => {
  const made = stage.model.get("made"), still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  Object.assign(canvas, { className: "live-digits", tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "200 digits: arrow keys choose one, a number key gives it that label");
  stage.panels.append(canvas);
  const chart = stage.panel({
    label: "Mean weights against the step", x: [0, 100], y: [0, 1], xlabel: "t, the step", ylabel: "weight σ(x)", height: 150,
  });
  const pad = document.createElement("div");
  pad.className = "live-pad";
  stage.controls.prepend(pad);
  const words = pad.appendChild(document.createElement("span"));
  const keys = range(CLASSES).map((k) => {
    const key = pad.appendChild(document.createElement("button"));
    Object.assign(key, { type: "button", textContent: k, ariaLabel: `label it ${k}` });
    key.addEventListener("click", () => label(k));
    return key;
  });

  let digits, chosen, run, state, history, until, seen = false, frame = null, columns = 20;
  stage.restart = () => {
    digits = new Digits(made);
    chosen = made.first;
    run = null;
  };

  /** The run from its first step, with the labels as they are. */
  function begin(s) {
    run = `${s.alpha} ${s.delta}`;
    state = init(digits, "FdeHBO", s);
    history = [];
    until = made.steps;
    note();
    wake();
  }

  function note() {
    const weights = [...state.x].map(sigmoid), wrong = digits.given.map((given, i) => given !== made.labels[i]);
    const mean = (which) => {
      const those = weights.filter((_, i) => wrong[i] === which);
      return those.length ? those.reduce((sum, weight) => sum + weight) / those.length : NaN;
    };
    history.push({ wrong: mean(true), right: mean(false), chosen: weights[chosen] });
    stage.model.set("path", { t: state.t, weights });
  }

  function label(k) {
    digits.given[chosen] = k;
    digits.relabel();
    until = Math.max(until, state.t + 150);
    wake();
  }

  /** Steps for an eighth of the time of a frame and more, only while somebody can see it. */
  function work() {
    frame = null;
    const s = stage.settings(), begun = performance.now();
    do {
      state = METHODS.FdeHBO.step(digits, state, { ...s, eta: 1, r_v: 100, beta: 1, lam: 1 }, digits.full());
      note();
    } while ((still ? 400 : 14) > performance.now() - begun && state.t < until);
    stage.update();
    wake();
  }

  function wake() {
    if (seen && !frame && state.t < until) frame = requestAnimationFrame(work);
    else stage.update();
    stage.working(!seen || state.t < until);
  }

  /** A digit in the colour of the page's text, drawn once. */
  const drawn = new Map();
  function inked(i, ink) {
    const key = `${i} ${ink}`;
    if (drawn.has(key)) return drawn.get(key);
    const picture = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE }), own = picture.getContext("2d");
    own.fillStyle = ink;
    for (let j = 0; j < PIXELS; j++) {
      own.globalAlpha = digits.X[i * FEATURES + j];
      own.fillRect(j % SIDE, Math.floor(j / SIDE), 1, 1);
    }
    drawn.set(key, picture);
    return picture;
  }

  /** Each digit as dark as its weight; wrong labels in a frame. */
  function draw_digits() {
    const width = stage.panels.clientWidth, ratio = devicePixelRatio || 1;
    columns = width < 420 ? 14 : 20;
    const size = width / columns, rows = Math.ceil(digits.n / columns);
    if (canvas.width !== Math.round(width * ratio)) Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(rows * size * ratio) });
    canvas.style.height = `${rows * size}px`;
    const colours = getComputedStyle(stage.root), ink = colours.getPropertyValue("--ink"), red = colours.getPropertyValue("--red");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, rows * size);
    digits.given.forEach((given, i) => {
      const left = (i % columns) * size, top = Math.floor(i / columns) * size;
      pen.globalAlpha = 0.08 + 0.92 * sigmoid(state.x[i]);
      pen.drawImage(inked(i, ink), left + 1.5, top + 1.5, size - 3, size - 3);
      pen.globalAlpha = 1;
      if (given !== made.labels[i]) {
        pen.strokeStyle = pen.fillStyle = red;
        pen.lineWidth = 1.5;
        pen.strokeRect(left + 1.5, top + 1.5, size - 3, size - 3);
        pen.font = "bold 10px sans-serif";
        pen.fillText(given, left + 3, top + 11);
      }
      if (i === chosen) {
        pen.strokeStyle = colours.getPropertyValue("--blue");
        pen.lineWidth = 3;
        pen.strokeRect(left + 1, top + 1, size - 2, size - 2);
      }
    });
  }

  function choose(i) {
    chosen = Math.min(Math.max(i, 0), digits.n - 1);
    history.forEach((one) => (one.chosen = NaN));
    history.at(-1).chosen = sigmoid(state.x[chosen]);
    stage.update();
  }

  canvas.addEventListener("click", (event) => {
    const size = canvas.clientWidth / columns;
    choose(Math.floor(event.offsetY / size) * columns + Math.floor(event.offsetX / size));
  });
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (way) choose(chosen + way);
    else if (/^\d$/.test(event.key)) label(Number(event.key));
    else return;
    event.preventDefault();
  });
  const sight = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    wake();
  });
  sight.observe(canvas);
  stage.leave = () => {
    sight.disconnect();
    cancelAnimationFrame(frame);
  };
  stage.restart();
  begin(stage.settings());

  return (s) => {
    if (run !== `${s.alpha} ${s.delta}`) begin(s);
    draw_digits();
    const t = range(history.length), last = history.at(-1), own = sigmoid(state.x[chosen]), given = digits.given[chosen];
    chart.x = [0, Math.max(100, history.length)];
    chart.begin();
    chart.line(t, history.map((one) => one.right), "green");
    chart.line(t, history.map((one) => one.wrong), "red");
    chart.line(t, history.map((one) => one.chosen), "blue bold");
    chart.legend([["your digit", "blue"], ["wrong labels", "red"], ["right labels", "green"]]);
    keys.forEach((key, k) => key.setAttribute("aria-pressed", k === given));
    words.textContent = `A ${made.labels[chosen]}, labelled ${given}: label it`;
    const fate = given === made.labels[chosen] ? "right" : "wrong";
    return `Step ${state.t}: wrong labels weigh ${show(last.wrong, 2)} on average, right ones ${show(last.right, 2)}. Your digit, with a ${fate} label, weighs ${show(own, 2)}.`;
  };
});
