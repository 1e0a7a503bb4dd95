// The valley as a picture: its depth, its floor y*(x), the objective above it, and the run that the dials ask for.

import { METHODS, Valley, path, walk } from "./core.js";
import { range, show } from "./stage.js";

export const X = [-2.6, 2.2], Y = [-2.3, 2.3];
export const COLOURS = { FdeHBO: "blue", FMBO: "purple", SOBA: "sky", alternating: "quiet" };
const DEPTHS = [0.02, 0.08, 0.2, 0.45, 0.9, 1.6, 2.6, 4], XS = range(121, ...X);

/** The run of `method` with these settings, as the library makes it. */
export function run(s, method = s.method) {
  const problem = new Valley({ noise: s.noise, start: [s.x0, s.y0] });
  return path(walk(problem, method, s, { seed: s.seed, steps: s.steps }));
}

/** Where y is so far above the floor (or, with -1, below it) that g has risen by `depth`: by bisection. */
function level(valley, x, depth, side) {
  const floor = valley.y_star(x), lowest = valley.lower(x, floor);
  let [near, far] = [0, 6];
  for (let i = 0; i < 40; i++) {
    const middle = (near + far) / 2;
    if (valley.lower(x, floor + side * middle) - lowest < depth) near = middle;
    else far = middle;
  }
  return floor + side * near;
}

export const valley = new Valley();
const FLOOR = XS.map((x) => valley.y_star(x));
const BANDS = DEPTHS.map((depth) => [-1, 1].map((side) => XS.map((x) => level(valley, x, depth, side))));
const HEIGHTS = XS.map((x) => valley.objective(x));

/** The valley from above. */
export function draw_valley(panel) {
  for (const [below, above] of BANDS) panel.area(XS, below, above, "band");
  panel.line(XS, FLOOR, "red dashed");
  panel.text(-2.35, valley.y_star(-2.35), "y*(x)", "red", [0, -8]);
}

export function draw_objective(panel) {
  panel.line(XS, HEIGHTS, "quiet bold");
  panel.text(-1.55, valley.objective(-1.55), "Φ(x)", "quiet", [-36, 0]);
}

/** A line through the curve of Phi at x, with that slope. */
export function tangent(panel, x, slope, look, words, below = false, at = valley.objective(x)) {
  const reach = 0.75 / Math.hypot(1, slope);
  panel.line([x - reach, x + reach], [at - reach * slope, at + reach * slope], `${look} bold`);
  panel.text(x + reach, at + reach * slope, words, look, [4, below ? 14 : -4]);
}

/** What became of a run that is not in the picture at its end. */
export function overflow(found, s) {
  const last = found.x.length - 1;
  if (last < s.steps) return `The run overflows at step ${last + 1}: make α, β or λ smaller.`;
  const x = found.x[last];
  return x < X[0] || x > X[1] ? `After ${last} steps x = ${show(x)}, outside the picture: make α smaller.` : "";
}

/** The lines that repeat the run in Python, and what the picture has for it. */
export function in_python(s) {
  const names = METHODS[s.method].options, found = run(s), last = found.x.length - 1;
  const given = names.map((name) => `${name}=${s[name]}`).join(", ");
  return `from bilevel_core.problems import Valley
from bilevel_core.solvers import SOLVERS

problem = Valley(noise=${s.noise}, start=(${s.x0}, ${s.y0}))
solver = SOLVERS["${s.method}"](${given})
state = solver.init(problem, seed=${s.seed})
for t in range(${last}):
    state = solver.step(problem, state)
print(state.x.item(), state.y.item(), state.v.item())
# ${found.x[last]} ${found.y[last]} ${found.v[last]}
`;
}
