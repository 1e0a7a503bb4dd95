// Chapter 5: v in its ball. The same run of FdeHBO twice, with the ball and without; drag its rim.

import { Quadratic, norm, walk } from "./core.js";
import { live, range, rounded, show } from "./stage.js";

export default live("ball", (stage) => {
  const plane = stage.panel({
    label: "The path of v, and the ball", equal: [[-2, 2], [-2, 2]], xlabel: "v₁", ylabel: "v₂: drag the rim", height: 300,
  });
  const slope = stage.panel({
    label: "The norm of the hypergradient against the step", log: ["y"], x: [0, 1], y: [1e-3, 100], xlabel: "t, the step", ylabel: "‖∇Φ(x)‖", height: 165,
  });
  const made = stage.model.get("made");
  const along = ([a, b], length) => [(a * length) / Math.hypot(a, b), (b * length) / Math.hypot(a, b)];
  let rim = [0.6, -0.8];
  plane.handle({
    label: "the radius of the ball",
    look: "live-purple",
    at: (s) => along(rim, Math.min(s.r_v, 1.9)),
    move: (a, b) => {
      if (Math.hypot(a, b) > 0.01) rim = [a, b];
      return { r_v: rounded(Math.hypot(a, b)) };
    },
    words: (s) => `radius ${show(s.r_v)}`,
  });
  stage.play("steps");

  return (s) => {
    const problem = new Quadratic(made, { noise: s.noise });
    const go = (r_v) => walk(problem, "FdeHBO", { ...s, r_v }, { seed: s.seed, steps: s.steps });
    const kept = go(s.r_v), free = go(Infinity), goal = problem.v_star(problem.minimiser());
    stage.model.set("path", { x: kept.map((z) => [...z.x]), y: kept.map((z) => [...z.y]), v: kept.map((z) => [...z.v]) });
    slope.x = [0, Math.max(s.steps, 2)];
    slope.begin();
    plane.ellipse(0, 0, s.r_v, s.r_v, "shade purple");
    plane.ellipse(0, 0, s.r_v, s.r_v, "purple thin");
    const curve = (states, look) => {
      plane.line(states.map((z) => z.v[0]), states.map((z) => z.v[1]), look);
      slope.line(range(states.length), states.map((z) => norm(problem.hypergradient(z.x))), look);
    };
    curve(free, "orange thin");
    curve(kept, "blue");
    plane.dot(kept.at(-1).v[0], kept.at(-1).v[1], "blue", 5);
    plane.dot(goal[0], goal[1], "red", 5);
    plane.legend([["v*", "red"], ["without the ball", "orange"], ["v in its ball", "blue"]]);
    const longest = Math.max(...kept.map((z) => norm(z.v))), of = (states) => show(norm(problem.hypergradient(states.at(-1).x)), 2);
    const outside = norm(goal) > s.r_v;
    const story = outside
      ? `The ball is too small: v* has length ${show(norm(goal))}, and v cannot reach it`
      : longest > 0.999 * s.r_v ? "v* is inside, and the ball cuts off the longest excursions of v" : "v* is inside, and v never meets the rim";
    const without = free.length <= s.steps ? `without the ball the run overflows at step ${free.length}` : `without it ‖∇Φ‖ ends at ${of(free)}`;
    const ended = kept.length <= s.steps ? `the run overflows at step ${kept.length}` : `with the ball ‖∇Φ‖ ends at ${of(kept)}`;
    return `${story}. After ${kept.length - 1} steps ${ended}; ${without}.`;
  };
});
