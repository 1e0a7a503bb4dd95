// Chapter 3: v on a bowl. Gradient steps on R(v) = v'Hv / 2 - b'v for one H; drag v_0, and make the step too long.

import { add, matvec, minus, norm, solve } from "./core.js";
import { live, range, show } from "./stage.js";

const ANGLE = 0.5, B = [1, 2];

/** The symmetric matrix with eigenvalues 1 and L, and axes turned by ANGLE. */
export function bowl(L) {
  const c = Math.cos(ANGLE), s = Math.sin(ANGLE);
  return [[c * c + L * s * s, (1 - L) * c * s], [(1 - L) * c * s, s * s + L * c * c]];
}

/** v_{t+1} = v_t - lam (H v_t - b). */
export function descend(H, v, lam, steps) {
  const found = [v];
  for (let t = 0; t < steps && norm(v) < 1e9; t++) found.push((v = add(v, minus(matvec(H, v), B), -lam)));
  return found;
}

export default live("bowl", (stage) => {
  const plane = stage.panel({
    label: "Level lines of R, with the path of v", equal: [[-2.2, 3.8], [-1.5, 3.1]], xlabel: "v₁", ylabel: "v₂: drag v₀", height: 290,
  });
  const error = stage.panel({
    label: "Distance of v from v* against the step", log: ["y"], x: [0, 1], y: [1e-6, 100], xlabel: "t, the step", ylabel: "‖v − v*‖", height: 165,
  });
  plane.handle({
    label: "v_0, where v starts",
    at: (s) => [s.v1, s.v2],
    move: (v1, v2) => ({ v1, v2 }),
    words: (s) => `v_0 = (${show(s.v1)}, ${show(s.v2)})`,
  });
  stage.play("steps");

  return (s) => {
    const H = bowl(s.L), goal = solve(H, B), found = descend(H, [s.v1, s.v2], s.lam, s.steps);
    stage.model.set("path", { v: found.map((v) => [...v]) });
    const round = range(73, 0, 2 * Math.PI), c = Math.cos(ANGLE), n = Math.sin(ANGLE);
    for (const size of [0.4, 0.9, 1.5, 2.2, 3, 4]) {
      const flat = round.map((a) => size * Math.cos(a)), steep = round.map((a) => (size * Math.sin(a)) / Math.sqrt(s.L));
      plane.line(round.map((_, i) => goal[0] + flat[i] * c - steep[i] * n), round.map((_, i) => goal[1] + flat[i] * n + steep[i] * c), "band", true);
      plane.line(round.map((_, i) => goal[0] + flat[i] * c - steep[i] * n), round.map((_, i) => goal[1] + flat[i] * n + steep[i] * c), "quiet thin");
    }
    plane.line(found.map((v) => v[0]), found.map((v) => v[1]), "blue");
    for (const v of found.slice(0, 60)) plane.dot(v[0], v[1], "blue small", 3);
    plane.dot(goal[0], goal[1], "red", 5);
    plane.text(goal[0], goal[1], "v*", "red", [8, -6]);
    const away = found.map((v) => norm(minus(v, goal))), factor = Math.max(Math.abs(1 - s.lam), Math.abs(1 - s.lam * s.L));
    error.x = [0, Math.max(s.steps, 2)];
    error.y = [Math.max(1e-12, Math.min(1e-2, 0.5 * Math.min(...away))), Math.max(10, 2 * Math.max(...away))];
    error.begin();
    error.line(range(s.steps + 1), range(s.steps + 1).map((t) => away[0] * factor ** t), "red dashed thin");
    error.line(range(found.length), away, "blue");
    error.legend([["worst factor", "red"], ["this path", "blue"]]);
    const limit = 2 / s.L;
    const how = s.lam > limit * 1.0001 ? `λ is above 2/L = ${show(limit)}: v jumps across the bowl, further and further away`
      : s.lam > limit * 0.9999 ? `λ is 2/L = ${show(limit)}: v jumps across the steep axis for ever`
      : s.lam > 1 / s.L ? `λ is between 1/L and 2/L = ${show(limit)}: v zigzags across the steep axis`
      : `λ is below 1/L = ${show(1 / s.L)}: v bends towards the flat axis and follows it`;
    return `${how}. One step multiplies the error by at most ${show(factor)}; after ${found.length - 1} steps it is ${show(away.at(-1))}.`;
  };
});
