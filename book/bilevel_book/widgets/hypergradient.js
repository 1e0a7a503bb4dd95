// Chapter 2: the hypergradient at a dragged x, by the formula, through K steps of y, and by differences of Phi.

import { live, range, show } from "./stage.js";
import { X, draw_objective, tangent, valley } from "./plane.js";

/** y after K steps beta from 0, and the slope in x of what f is there: differentiated through every step. */
export function unrolled(x, K, beta) {
  let y = 0, slope = 0;
  for (let k = 0; k < K; k++) {
    [y, slope] = [y - beta * (Math.sinh(y) - valley.s(x)), slope - beta * (Math.cosh(y) * slope - valley.ds(x))];
  }
  return { y, slope: valley.direct(x) + (y - valley.a) * slope };
}

/** [Phi(x + delta) - Phi(x - delta)] / (2 delta). */
export const by_difference = (x, delta) => (valley.objective(x + delta) - valley.objective(x - delta)) / (2 * delta);

export default live("hypergradient", (stage) => {
  const above = stage.panel({
    label: "The objective with its true and its wrong tangent", x: X, y: [-0.3, 4.2], xlabel: "x: drag the point", ylabel: "Φ, the objective", height: 235,
  });
  const ways = stage.panel({
    label: "The slope in three ways, as arrows", x: [-5, 5], y: [0, 5], xlabel: "slope", ylabel: "", height: 250, blank: true,
  });
  above.handle({
    label: "x",
    at: (s) => [s.x0, valley.objective(s.x0)],
    move: (x0) => ({ x0 }),
    words: (s) => `x = ${show(s.x0)}`,
  });

  return (s) => {
    const x = s.x0, direct = valley.direct(x), v = valley.v_star(x), implicit = valley.ds(x) * v, formula = direct + implicit;
    const through = unrolled(x, s.steps, s.beta), seen = by_difference(x, s.delta);
    stage.model.set("path", { x, direct, formula, through: through.slope, difference: seen });
    draw_objective(above);
    tangent(above, x, direct, "red", "direct term only", direct < formula);
    tangent(above, x, formula, "green", "Φ′", formula <= direct);
    ways.line([0, 0], [0, 5], "quiet thin");
    ways.line([formula, formula], [0, 3.8], "green dashed thin");
    const row = (height, from, to, look, words) => {
      ways.arrow(from, height, to, height, `${look} bold`);
      ways.text(-5, height, words, look, [4, -8]);
    };
    row(4.25, 0, direct, "red", `direct term: ${show(direct)}`);
    ways.arrow(direct, 3.85, formula, 3.85, "purple bold");
    ways.text(5, 4.25, `− J v = ${show(implicit)}`, "purple", [-4, -8], "end");
    row(2.65, 0, formula, "green", `1. the formula: ${show(formula)}`);
    row(1.55, 0, through.slope, "orange", `2. through ${s.steps} steps of y: ${show(through.slope)}`);
    row(0.45, 0, seen, "sky", `3. differences of Φ: ${show(seen)}`);
    const wrong = direct * formula < 0 ? "The direct term alone has the wrong sign" : "The direct term alone has the right sign";
    return `${wrong}: ${show(direct)}, where Φ′ = ${show(formula)}. ${s.steps} steps of y give ${show(through.slope)}, differences of Φ ${show(seen)}.`;
  };
});
