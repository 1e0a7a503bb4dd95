// Chapters 13 and 14: how fast A(T), the mean of |Phi'|^2 over the first T steps, falls. Eight seeds, 10000 steps each,
// computed while you look. Drag where the fit begins.

import { METHODS, Generator, Valley, init, power } from "./core.js";
import { live, show } from "./stage.js";

const SEEDS = 8, T95 = 2.365; // the quantile of Student's t for an interval of 95 % from eight
const HORIZONS = Array.from({ length: 33 }, (_, k) => Math.round(10 ** (k / 8))).filter((T, k, all) => T !== all[k - 1]);

/** The schedules c (4 + t)^-p of Chapter 14, for FdeHBO with any p and q, and for SOBA with its own. */
export function schedules({ p, q }) {
  return {
    FdeHBO: { alpha: power(0.5, 4, p), beta: power(1, 4, p), lam: power(1, 4, p), eta: power(1, 3, q, 1), delta: 0.1, r_v: 100 },
    SOBA: { alpha: power(0.5, 4, 0.5), beta: power(1, 4, 0.5), lam: power(1, 4, 0.5) },
  };
}

/** One run that goes on from where it stopped, with A at the horizons that it has passed. */
class Averaged {
  constructor(method, options, s, seed) {
    Object.assign(this, { method, options, problem: new Valley({ noise: s.noise, start: [s.x0, 0] }), sum: 0, A: [] });
    this.generator = new Generator(seed);
    this.state = init(this.problem, method, options);
  }

  step() {
    this.sum += this.problem.hypergradient(this.state.x[0]) ** 2;
    this.state = METHODS[this.method].step(this.problem, this.state, this.options, this.problem.sample(this.generator));
    if (this.state.t === HORIZONS[this.A.length]) this.A.push(this.sum / this.state.t);
  }
}

/** The slope of log A against log T from `since` on, by least squares. */
export function slope(A, since) {
  const points = A.map((a, k) => [Math.log(HORIZONS[k]), Math.log(a)]).filter(([T]) => T >= Math.log(since) - 1e-9);
  const mean = (i) => points.reduce((sum, point) => sum + point[i], 0) / points.length, [T, a] = [mean(0), mean(1)];
  return points.reduce((sum, p) => sum + (p[0] - T) * (p[1] - a), 0) / points.reduce((sum, p) => sum + (p[0] - T) ** 2, 0);
}

/** A mean with half of its interval. */
function interval(values) {
  const n = values.length, mean = values.reduce((sum, value) => sum + value, 0) / n;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  return [mean, T95 * Math.sqrt(variance / n)];
}

export default live("slopes", (stage) => {
  const chart = stage.panel({
    label: "The average of the squared slope against T, on logarithmic axes", log: ["x", "y"], x: [1, 1e4], y: [1e-3, 30], xlabel: "T, the number of steps: drag where the fit begins", ylabel: "A(T)", height: 400,
  });
  chart.handle({
    label: "where the fit begins",
    look: "live-green",
    at: (s) => [s.since, 1.5e-3],
    move: (since) => ({ since: Math.round(since) }),
    words: (s) => `from T = ${s.since} on`,
  });
  const last = HORIZONS.at(-1);
  let key = null, runs = [], frame = null, seen = false;

  function work() {
    frame = null;
    const begun = performance.now();
    while (performance.now() - begun < 14) {
      const next = runs.find((run) => run.state.t < last);
      if (!next) break;
      for (let k = 0; k < 100 && next.state.t < last; k++) next.step();
    }
    stage.update();
  }

  const sight = new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    stage.update();
  });
  sight.observe(stage.root);
  stage.leave = () => {
    sight.disconnect();
    cancelAnimationFrame(frame);
  };

  return (s) => {
    const now = JSON.stringify([s.p, s.q, s.noise, s.seed, s.x0]);
    if (now !== key) {
      key = now;
      const both = Object.entries(schedules(s));
      runs = Array.from({ length: SEEDS }, (_, k) => both.map(([method, options]) => new Averaged(method, options, s, s.seed + k))).flat();
    }
    const left = runs.filter((run) => run.state.t < last).length;
    stage.working(left > 0);
    if (left && seen && !frame) frame = requestAnimationFrame(work);
    const told = Object.entries({ FdeHBO: "blue", SOBA: "sky" }).map(([method, look]) => {
      const done = runs.filter((run) => run.method === method && run.state.t >= last && run.A.every(Number.isFinite));
      for (const run of runs) if (run.method === method) chart.line(HORIZONS.slice(0, run.A.length), run.A, `${look} thin faint`);
      if (done.length < SEEDS) return { method, done: done.length };
      const mean = HORIZONS.map((_, k) => done.reduce((sum, run) => sum + run.A[k], 0) / SEEDS);
      chart.line(HORIZONS, mean, `${look} bold`);
      return { method, done: SEEDS, fit: interval(done.map((run) => slope(run.A, s.since))) };
    });
    for (const [exponent, words] of [[2 / 3, "slope −2/3"], [1 / 2, "slope −1/2"]]) {
      chart.line([10, 1e4], [10, 1e4].map((T) => 12 * (T / 10) ** -exponent), "quiet dashed thin");
      chart.text(1e4, 12 * 1e3 ** -exponent, words, "quiet", [-4, -6], "end");
    }
    chart.line([s.since, s.since], [1e-3, 30], "green thin");
    chart.legend([["SOBA", "sky"], ["FdeHBO", "blue"]]);
    stage.model.set("path", { T: HORIZONS, A: runs.map((run) => run.A), slopes: told.map((one) => one.fit || null) });
    if (left) return `Computing: ${runs.length - left} of ${runs.length} runs of ${last} steps are done.`;
    const words = told.map(({ method, fit }) => (fit ? `${method} falls like T to the power ${show(fit[0], 2)} ± ${show(fit[1] > 1e-9 ? fit[1] : 0, 1)}` : `${method} overflows on some seeds`));
    return `From T = ${s.since} on, ${words.join("; ")} (${SEEDS} seeds, 95 %).`;
  };
});
