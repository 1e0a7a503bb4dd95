// Chapter 4: one central difference. Drag the point; see the two gradients that it takes, and the U of its error.

import { Valley, hessian_vector } from "./core.js";
import { live, range, show } from "./stage.js";
import { X, Y, draw_valley } from "./plane.js";

const DELTAS = range(121, -12, 0).map((k) => 10 ** k), TYPES = ["float32", "float64"];
const LOOKS = { float32: "orange", float64: "blue" };

/** H v as it is seen with this delta, and its relative error, in a type of number. */
export function measured(dtype, x, y, v, delta) {
  const valley = new Valley({ dtype }), r = valley.round;
  const [seen] = hessian_vector(valley, [r(x)], [r(y)], [r(v)], 0, delta), exact = Math.cosh(r(y)) * r(v);
  return { seen, exact, error: Math.abs(seen / exact - 1) };
}

/** Typical: the root of the mean square over a few points close by, since rounding is different at each. */
function typical(dtype, s, delta) {
  const squares = range(12).map((k) => measured(dtype, s.x0, s.y0 + 0.0037 * (k - 5.5), s.v, delta).error ** 2);
  return Math.sqrt(squares.reduce((sum, square) => sum + square) / 12);
}

export default live("delta", (stage) => {
  const plane = stage.panel({
    label: "The valley, with the point and the two ends", x: X, y: Y, xlabel: "x", ylabel: "y: drag the point", height: 190, half: true,
  });
  const near = stage.panel({
    label: "The gradient of g along v, close to the point", x: [-2, 2], y: [-1, 1], xlabel: "(y′ − y) / (δv)", ylabel: "∇g(y′) − ∇g(y), per δv", height: 190, half: true,
  });
  const u = stage.panel({
    label: "Relative error of H v against delta, a U", log: ["x", "y"], x: [1e-12, 1], y: [1e-16, 10], xlabel: "δ", ylabel: "error of Hv", height: 215,
  });
  plane.handle({
    label: "the point at which H v is taken",
    at: (s) => [s.x0, s.y0],
    move: (x0, y0) => ({ x0, y0 }),
    words: (s) => `x = ${show(s.x0)}, y = ${show(s.y0)}`,
  });
  u.handle({
    label: "delta",
    look: "live-green",
    at: (s) => [s.delta, Math.max(measured(s.dtype, s.x0, s.y0, s.v, s.delta).error, 1e-16)],
    move: (delta) => ({ delta }),
    words: (s) => `delta = ${show(s.delta)}`,
  });

  return (s) => {
    const { seen, exact, error } = measured(s.dtype, s.x0, s.y0, s.v, s.delta), look = LOOKS[s.dtype];
    stage.model.set("path", { seen, exact, error });
    draw_valley(plane);
    const ends = [s.y0 - s.delta * s.v, s.y0 + s.delta * s.v];
    plane.line([s.x0, s.x0], ends, "green bold");
    for (const end of ends) plane.dot(s.x0, end, "green", 4);

    // The gradient as this type of number has it, from y - 2 delta v to y + 2 delta v.
    const valley = new Valley({ dtype: s.dtype }), r = valley.round, places = range(161, -2, 2);
    const slope = (y) => valley.lower_y([r(s.x0)], [r(y)], 0)[0], middle = slope(s.y0);
    const risen = (u) => (slope(s.y0 + u * s.delta * s.v) - middle) / (s.delta * s.v);
    const curve = places.map(risen), steep = Math.max(exact / s.v, 0.5);
    near.y = [-2.4 * steep, 2.4 * steep];
    near.begin();
    near.line([-2, 2], [(-2 * exact) / s.v, (2 * exact) / s.v], "red dashed");
    near.line(places, curve, look);
    near.line([-1, 1], [risen(-1), risen(1)], "green");
    for (const end of [-1, 1]) near.dot(end, risen(end), "green", 4);

    for (const dtype of TYPES) {
      u.line(DELTAS, DELTAS.map((delta) => typical(dtype, s, delta)), `${LOOKS[dtype]} ${dtype === s.dtype ? "bold" : "thin"}`);
    }
    u.legend([["float64", "blue"], ["float32", "orange"]]);
    u.line([s.delta, s.delta], [1e-16, 10], "green thin");
    const digits = Math.max(0, Math.floor(-Math.log10(Math.max(error, 1e-17)))), best = Math.min(...DELTAS.map((d) => typical(s.dtype, s, d)));
    const least = DELTAS.find((d) => typical(s.dtype, s, d) === best);
    const why = s.delta < least / 10 ? "too small: rounding spoils it" : s.delta > 10 * least ? "too large: the gradient bends" : "near the best";
    const right = ["no digit is right", "1 digit is right"][digits] || `${digits} digits are right`;
    return `δ = ${show(s.delta)} in ${s.dtype} is ${why}. It sees Hv = ${show(seen, 6)}, which is ${show(exact, 6)}; relative error ${show(error)}: ${right}.`;
  };
});
