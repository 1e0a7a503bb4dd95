// Chapter 7: nine dials and four methods on the same draws; the chosen one bold, the others thin.

import { METHODS } from "./core.js";
import { live, range, show } from "./stage.js";
import { COLOURS, X, Y, draw_valley, in_python, overflow, run, valley } from "./plane.js";

export default live("everything", (stage) => {
  const plane = stage.panel({
    label: "The valley from above, with the paths of four methods", x: X, y: Y, ylabel: "y", xlabel: "x", height: 235,
  });
  const slope = stage.panel({
    label: "The slope of the objective against the step", log: ["y"], x: [0, 1], y: [1e-5, 5], ylabel: "|Φ′(x)|", height: 150,
  });
  const adjoint = stage.panel({
    label: "The adjoint vector v against the step", x: [0, 1], y: [-2, 2], ylabel: "v, and v* dashed", xlabel: "t, the step", height: 135,
  });
  plane.handle({
    label: "the start of the runs",
    at: (s) => [s.x0, s.y0],
    move: (x0, y0) => ({ x0, y0 }),
    words: (s) => `x0 = ${show(s.x0)}, y0 = ${show(s.y0)}`,
  });
  stage.unused = (s) => ["lam", "eta", "delta", "r_v"].filter((name) => !METHODS[s.method].options.includes(name));
  stage.play("steps");
  stage.python(in_python);

  return (s) => {
    const runs = Object.fromEntries(Object.keys(METHODS).map((method) => [method, run(s, method)]));
    const chosen = runs[s.method], last = chosen.x.length - 1, colour = COLOURS[s.method];
    stage.model.set("path", chosen);
    draw_valley(plane);
    slope.x = adjoint.x = [0, Math.max(s.steps, 2)];
    const reach = chosen.v.reduce((most, v) => Math.max(most, Math.abs(v)), 0.5);
    adjoint.y = [-1.15 * Math.min(reach, 50), 1.15 * Math.min(reach, 50)];
    for (const panel of [slope, adjoint]) panel.begin();
    const order = Object.keys(METHODS).filter((method) => method !== s.method);
    for (const method of [...order, s.method]) {
      const look = `${COLOURS[method]} ${method === s.method ? "" : "thin"}`, { x, y } = runs[method], t = range(x.length);
      plane.line(x, y, look);
      plane.dot(x.at(-1), y.at(-1), COLOURS[method], method === s.method ? 6 : 4);
      slope.line(t, x.map((at) => Math.abs(valley.hypergradient(at))), look);
    }
    slope.legend(Object.keys(METHODS).reverse().map((method) => [method, COLOURS[method]]));
    const t = range(last + 1);
    if (METHODS[s.method].options.includes("r_v") && s.r_v < adjoint.y[1]) {
      for (const side of [-1, 1]) adjoint.line([0, s.steps], [side * s.r_v, side * s.r_v], "orange thin");
      adjoint.text(s.steps, s.r_v, "rᵥ", "orange", [-4, -4], "end");
    }
    adjoint.line(t, chosen.x.map((x, i) => valley.v_star(x, chosen.y[i])), "red dashed thin");
    adjoint.line(t, chosen.v, colour);
    const ends = Object.keys(runs).map((method) => [method, Math.abs(valley.hypergradient(runs[method].x.at(-1)))]);
    const best = ends.reduce((one, other) => (other[1] < one[1] ? other : one));
    const lost = overflow(chosen, s);
    if (lost) return lost;
    const own = Math.abs(valley.hypergradient(chosen.x[last]));
    const rank = own <= 1.01 * best[1] ? "none of the four is lower" : `${best[0]} is lowest with ${show(best[1])}`;
    return `After ${last} steps ${s.method} is at x = ${show(chosen.x[last])}, where |Φ′| = ${show(own)}; ${rank}.`;
  };
});
