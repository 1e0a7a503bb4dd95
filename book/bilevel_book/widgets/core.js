// The library in the page: its two problems with closed forms, four of its methods, its random numbers.
// Names and steps are those of bilevel_core (problems.py, directions.py, solvers/), and tests/pages/test_widgets.py
// holds them to it. Vectors are arrays; no function changes its arguments.

// ---------------------------------------------------------------------------------------------------- vectors

export const zeros = (n) => new Float64Array(n);

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

export const norm = (a) => Math.sqrt(dot(a, a));

/** a + c b. */
export function add(a, b, c = 1) {
  const sum = zeros(a.length);
  for (let i = 0; i < a.length; i++) sum[i] = a[i] + c * b[i];
  return sum;
}

/** c a. */
export function times(c, a) {
  const product = zeros(a.length);
  for (let i = 0; i < a.length; i++) product[i] = c * a[i];
  return product;
}

export const minus = (a, b) => add(a, b, -1);
export const finite = (...vectors) => vectors.every((a) => a.every(Number.isFinite));

/** M a, where M is an array of rows. */
export function matvec(M, a) {
  const product = zeros(M.length);
  for (let i = 0; i < M.length; i++) product[i] = dot(M[i], a);
  return product;
}

export const transpose = (M) => M[0].map((_, j) => M.map((row) => row[j]));

/** M^-1 a by Gaussian elimination with pivots. */
export function solve(M, a) {
  const n = a.length, rows = M.map((row, i) => [...row, a[i]]);
  for (let j = 0; j < n; j++) {
    let pivot = j;
    for (let i = j + 1; i < n; i++) if (Math.abs(rows[i][j]) > Math.abs(rows[pivot][j])) pivot = i;
    [rows[j], rows[pivot]] = [rows[pivot], rows[j]];
    for (let i = j + 1; i < n; i++) {
      const share = rows[i][j] / rows[j][j];
      for (let k = j; k <= n; k++) rows[i][k] -= share * rows[j][k];
    }
  }
  const z = zeros(n);
  for (let i = n - 1; i >= 0; i--) {
    z[i] = rows[i][n];
    for (let k = i + 1; k < n; k++) z[i] -= rows[i][k] * z[k];
    z[i] /= rows[i][i];
  }
  return z;
}

// ---------------------------------------------------------------------------------------------- random numbers

/** torch.Generator on a CPU: MT19937 (Matsumoto, Nishimura 1998), doubles of 53 bits, normals by Box and Muller.
 *  torch draws 16 and more normals at once in another order, so this is its sequence for tensors below 16 elements. */
export class Generator {
  constructor(seed) {
    this.words = new Uint32Array(624);
    this.next = 624;
    this.spare = null; // Box and Muller make two normals at a time
    this.words[0] = seed >>> 0;
    for (let i = 1; i < 624; i++) {
      const last = this.words[i - 1];
      this.words[i] = Math.imul(last ^ (last >>> 30), 1812433253) + i;
    }
  }

  twist() {
    const words = this.words;
    for (let i = 0; i < 624; i++) {
      const both = (words[i] & 0x80000000) | (words[(i + 1) % 624] & 0x7fffffff);
      words[i] = words[(i + 397) % 624] ^ (both >>> 1) ^ (both & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }

  bits() {
    if (this.next === 624) this.twist();
    let word = this.words[this.next++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  /** Uniform on [0, 1). */
  uniform() {
    const high = this.bits() & 0x1fffff, low = this.bits();
    return (high * 2 ** 32 + low) / 2 ** 53;
  }

  /** Standard normal. */
  normal() {
    if (this.spare !== null) {
      const kept = this.spare;
      this.spare = null;
      return kept;
    }
    const angle = 2 * Math.PI * this.uniform(), radius = Math.sqrt(-2 * Math.log1p(-this.uniform()));
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  normals(n, scale = 1) {
    return Float64Array.from({ length: n }, () => scale * this.normal());
  }
}

// ---------------------------------------------------------------------------------------------------- problems
// A problem has a start, sample(generator), and its first-order gradients upper_x, upper_y, lower_x, lower_y at
// (x, y, batch). Those of the lower loss take a weight, because a difference of gradients in torch is the gradient of
// a weighted difference: where that is rounded matters in float32. Hv and Jv are the exact products.

const ROUND = { float64: (a) => a, float32: Math.fround };

/** g = cosh(y) - s(x) y, s(x) = 2 sin(3x / 2);  f = (y - a)^2 / 2 + c (x - b)^2 / 2; a draw adds noise n y to each. */
export class Valley {
  constructor({ a = 1, b = -0.8, c = 0.3, noise = 0, start = [-0.4, 1.5], dtype = "float64" } = {}) {
    Object.assign(this, { a, b, c, noise, first: start, round: ROUND[dtype] });
  }

  start() {
    return { x: [this.first[0]], y: [this.first[1]] };
  }

  sample(generator) {
    return { upper: this.noise * generator.normal(), lower: this.noise * generator.normal() };
  }

  full() {
    return { upper: 0, lower: 0 };
  }

  s(x) {
    const r = this.round;
    return r(2 * r(Math.sin(r(1.5 * x))));
  }

  ds(x) {
    const r = this.round;
    return r(1.5 * r(2 * r(Math.cos(r(1.5 * x)))));
  }

  upper_x([x]) {
    return [this.c * (x - this.b)];
  }

  upper_y(x, [y], batch) {
    return [y - this.a + batch];
  }

  lower_x([x], [y], batch, weight = 1) {
    const r = this.round;
    return [r(-r(weight * y) * this.ds(x))];
  }

  lower_y([x], [y], batch, weight = 1) {
    const r = this.round;
    return [r(r(weight * r(Math.sinh(y))) - r(weight * r(this.s(x) + batch)))];
  }

  Hv(x, [y], [v]) {
    return [Math.cosh(y) * v];
  }

  Jv([x], y, [v]) {
    return [-this.ds(x) * v];
  }

  // The closed forms take numbers.
  y_star(x) {
    return Math.asinh(this.s(x));
  }

  v_star(x, y = this.y_star(x)) {
    return (y - this.a) / Math.cosh(y);
  }

  lower(x, y) {
    return Math.cosh(y) - this.s(x) * y;
  }

  objective(x) {
    return ((this.y_star(x) - this.a) ** 2 + this.c * (x - this.b) ** 2) / 2;
  }

  /** c (x - b): all of grad_x f, and nothing of how y* moves. */
  direct(x) {
    return this.c * (x - this.b);
  }

  hypergradient(x) {
    return this.direct(x) + this.ds(x) * this.v_star(x);
  }
}

/** g = y'A y / 2 - y'(B x + b),  f = ||y - c||^2 / 2 + rho ||x||^2 / 2; A has its eigenvalues evenly over [mu, L].
 *  `made` holds what the library has drawn: the rotation of A, and B, b, c and x0. */
export class Quadratic {
  constructor(made, { mu = 1, L = 3, rho = 0.5, noise = 0 } = {}) {
    const n = made.b.length, Q = made.rotation;
    const eigenvalue = (k) => (n === 1 ? mu : mu + ((L - mu) * k) / (n - 1));
    const A = Q.map((p) => Q.map((q) => p.reduce((sum, _, k) => sum + p[k] * eigenvalue(k) * q[k], 0)));
    Object.assign(this, { A, B: made.B, BT: transpose(made.B), b: made.b, c: made.c, x0: made.x0, rho, noise, mu, L });
  }

  start() {
    return { x: this.x0, y: zeros(this.b.length) };
  }

  sample(generator) {
    const z = 2 * generator.uniform() - 1, normals = (like) => generator.normals(like.length, this.noise);
    const upper = { x: normals(this.x0), y: normals(this.b) };
    return { upper, lower: { scale: 1 + (Math.min(this.noise, 1) * z) / 2, y: normals(this.b) } };
  }

  full() {
    const none = zeros(this.b.length);
    return { upper: { x: zeros(this.x0.length), y: none }, lower: { scale: 1, y: none } };
  }

  upper_x(x, y, batch) {
    return add(batch.x, x, this.rho);
  }

  upper_y(x, y, batch) {
    return add(minus(y, this.c), batch.y);
  }

  lower_x(x, y, batch, weight = 1) {
    return times(-weight * batch.scale, matvec(this.BT, y));
  }

  lower_y(x, y, batch, weight = 1) {
    const slope = minus(matvec(this.A, y), add(matvec(this.B, x), this.b));
    return times(weight, minus(times(batch.scale, slope), batch.y));
  }

  Hv(x, y, v, batch) {
    return times(batch.scale, matvec(this.A, v));
  }

  Jv(x, y, v, batch) {
    return times(-batch.scale, matvec(this.BT, v));
  }

  y_star(x) {
    return solve(this.A, add(matvec(this.B, x), this.b));
  }

  v_star(x, y = this.y_star(x)) {
    return solve(this.A, minus(y, this.c));
  }

  objective(x) {
    const r = minus(this.y_star(x), this.c);
    return (dot(r, r) + this.rho * dot(x, x)) / 2;
  }

  hypergradient(x) {
    return add(matvec(this.BT, this.v_star(x)), x, this.rho);
  }

  /** The x where grad Phi = 0: grad Phi is affine, so its columns are differences. */
  minimiser() {
    const n = this.x0.length, at0 = this.hypergradient(zeros(n));
    const unit = (i) => Float64Array.from({ length: n }, (_, j) => +(i === j));
    const columns = Array.from({ length: n }, (_, i) => minus(this.hypergradient(unit(i)), at0));
    return solve(transpose(columns.map((column) => [...column])), times(-1, at0));
  }
}

// --------------------------------------------------------------------------------------------------- directions

/** H v: exact, or with delta  [grad_y g(x, y + delta v) - grad_y g(x, y - delta v)] / (2 delta). */
export function hessian_vector(problem, x, y, v, batch, delta) {
  if (delta === undefined) return problem.Hv(x, y, v, batch);
  const { up, down, weight, sum } = difference(problem, y, v, delta);
  return sum(problem.lower_y(x, up, batch, weight), problem.lower_y(x, down, batch, -weight));
}

/** J v: exact, or with delta  [grad_x g(x, y + delta v) - grad_x g(x, y - delta v)] / (2 delta). */
export function jacobian_vector(problem, x, y, v, batch, delta) {
  if (delta === undefined) return problem.Jv(x, y, v, batch);
  const { up, down, weight, sum } = difference(problem, y, v, delta);
  return sum(problem.lower_x(x, up, batch, weight), problem.lower_x(x, down, batch, -weight));
}

/** The ends y + delta v and y - delta v, the weight 1 / (2 delta) of the gradients there, and their sum. */
function difference(problem, y, v, delta) {
  if (!problem.round || problem.round === ROUND.float64) {
    return { up: add(y, v, delta), down: add(y, v, -delta), weight: 1 / (2 * delta), sum: add };
  }
  const r = problem.round, d = r(delta), step = v.map((part) => r(d * part)); // every operation is rounded
  const sum = (a, b) => a.map((part, i) => r(part + b[i]));
  return { up: sum(y, step), down: sum(y, step.map((part) => -part)), weight: r(1 / r(2 * delta)), sum };
}

/** The three directions at one point, with exact products, or with a delta by central differences.
 *      d_y = grad_y g      d_v = H v - grad_y f      d_x = grad_x f - J v                                      */
export function directions(problem, { x, y, v }, samples, delta) {
  const Hv = hessian_vector(problem, x, y, v, samples.lower, delta);
  const Jv = jacobian_vector(problem, x, y, v, samples.lower, delta);
  return {
    y: problem.lower_y(x, y, samples.lower),
    v: minus(Hv, problem.upper_y(x, y, samples.upper)),
    x: minus(problem.upper_x(x, y, samples.upper), Jv),
  };
}

/** The nearest point to v in the ball of radius r_v. The factor keeps its norm below r_v in floating point. */
export function project(v, r_v) {
  const length = norm(v);
  return length > r_v ? times(((1 - 4 * Number.EPSILON) * r_v) / length, v) : v;
}

// ------------------------------------------------------------------------------------------------------ methods

/** min(cap, c (w + t)^-p), as bilevel_core.schedules.Power. */
export const power = (c, w = 8, p = 1 / 3, cap = Infinity) => (t) => Math.min(cap, c * Math.pow(w + t, -p));

const value = (rate, t) => (typeof rate === "function" ? rate(t) : rate);

/** h_t = d_t(now) + (1 - eta) (h_{t-1} - d_t(before)), for each of the three. */
export function recursive_momentum(now, past, before, eta) {
  const part = (name) => add(now[name], minus(past[name], before[name]), 1 - eta);
  return { y: part("y"), v: part("v"), x: part("x") };
}

/** One step of each variable, all from the time-t point. */
function move(state, h, { alpha, beta, lam }) {
  const { x, y, v, t } = state;
  return { x: add(x, h.x, -value(alpha, t)), y: add(y, h.y, -value(beta, t)), v: add(v, h.v, -value(lam, t)), t: t + 1 };
}

/** FMBO, and with a delta FdeHBO. At t = 0 there is no past, so eta is 1. */
function momentum_step(problem, state, options, samples, delta) {
  const eta = state.t === 0 ? 1 : value(options.eta, state.t);
  const now = directions(problem, state, samples, delta);
  const h = eta < 1 ? recursive_momentum(now, state.h, directions(problem, state.before, samples, delta), eta) : now;
  const next = move(state, h, options), { x, y, v } = state;
  return { ...next, v: project(next.v, options.r_v), before: { x, y, v }, h, now };
}

export const METHODS = {
  FdeHBO: {
    step: (problem, state, options, samples) => momentum_step(problem, state, options, samples, options.delta),
    options: ["alpha", "beta", "lam", "eta", "delta", "r_v"],
    cost: { gradients: 14, Hv: 0, Jv: 0 },
  },
  FMBO: {
    step: (problem, state, options, samples) => momentum_step(problem, state, options, samples),
    options: ["alpha", "beta", "lam", "eta", "r_v"],
    cost: { gradients: 6, Hv: 2, Jv: 2 },
  },
  SOBA: {
    step: (problem, state, options, samples) => move(state, directions(problem, state, samples), options),
    options: ["alpha", "beta", "lam"],
    cost: { gradients: 3, Hv: 1, Jv: 1 },
  },
  // The control: no second-order term at all, and x moves after y.
  alternating: {
    step(problem, { x, y, v, t }, { alpha, beta }, samples) {
      const moved = add(y, problem.lower_y(x, y, samples.lower), -value(beta, t));
      return { x: add(x, problem.upper_x(x, moved, samples.upper), -value(alpha, t)), y: moved, v, t: t + 1 };
    },
    options: ["alpha", "beta"],
    cost: { gradients: 2, Hv: 0, Jv: 0 },
  },
};

/** What a step costs, a product counted as so many gradients. At t = 0, or where eta is 1, momentum needs one point. */
export function cost(method, t, eta, price = 1) {
  const { gradients, Hv, Jv } = METHODS[method].cost, has_past = METHODS[method].options.includes("eta");
  const share = has_past && (t === 0 || value(eta, t) >= 1) ? 0.5 : 1;
  return share * (gradients + price * (Hv + Jv));
}

/** The state at t = 0: the problem's start and v = 0, unless given. */
export function init(problem, method, options, start = {}) {
  const { x, y } = problem.start();
  const state = { x, y, v: zeros(y.length), ...start, t: 0 };
  if (METHODS[method].options.includes("r_v")) state.v = project(state.v, options.r_v);
  // No step reads these zeros, because eta is 1 at t = 0.
  const h = { y: zeros(y.length), v: zeros(y.length), x: zeros(x.length) };
  return { ...state, before: state, h };
}

/** Every state from the first to the last, at most steps + 1; it ends early at the last state with finite numbers. */
export function walk(problem, method, options, { seed = 0, steps = 1000, start = {} } = {}) {
  const generator = new Generator(seed), states = [init(problem, method, options, start)];
  for (let t = 0; t < steps; t++) {
    const next = METHODS[method].step(problem, states[t], options, problem.sample(generator));
    if (!finite(next.x, next.y, next.v)) break;
    states.push(next);
  }
  return states;
}

/** A walk as {x: [...], y: [...], v: [...]}, of numbers where the problem has one x and one y, else of arrays. */
export function path(states) {
  const bare = (z) => (z.length === 1 ? z[0] : Array.from(z));
  return { x: states.map((s) => bare(s.x)), y: states.map((s) => bare(s.y)), v: states.map((s) => bare(s.v)) };
}
