// Chapter 1: a run in the valley. Drag the start; see the floor y*(x), and the right and the wrong slope where it ends.

import { live, show } from "./stage.js";
import { COLOURS, X, Y, draw_objective, draw_valley, in_python, overflow, run, tangent, valley } from "./plane.js";

export default live("valley", (stage) => {
  const plane = stage.panel({
    label: "The valley from above, with the path of the run", x: X, y: Y, ylabel: "y, the lower variable", height: 245,
  });
  const above = stage.panel({
    label: "The objective, with two slopes where the run ends", x: X, y: [-0.2, 4.2], ylabel: "Φ, the objective", xlabel: "x, the upper variable", height: 190,
  });
  plane.handle({
    label: "the start of the run",
    at: (s) => [s.x0, s.y0],
    move: (x0, y0) => ({ x0, y0 }),
    words: (s) => `x0 = ${show(s.x0)}, y0 = ${show(s.y0)}`,
  });
  stage.play("steps");
  stage.python(in_python);

  return (s) => {
    const found = run(s), last = found.x.length - 1, x = found.x[last], colour = COLOURS[s.method];
    stage.model.set("path", found);
    draw_valley(plane);
    plane.line(found.x, found.y, colour);
    plane.dot(x, found.y[last], colour, 6);
    plane.text(s.x0, s.y0, "drag me", "orange", [16, 4]);
    draw_objective(above);
    const lost = overflow(found, s);
    if (lost) return lost;
    const right = valley.hypergradient(x), wrong = valley.direct(x);
    tangent(above, x, wrong, "red", `wrong ${show(wrong, 2)}`, wrong < right);
    tangent(above, x, right, "green", `right ${show(right, 2)}`, right <= wrong);
    above.dot(x, valley.objective(x), colour, 6);
    const judged = Math.abs(right) < 0.05 ? "near a minimum of Φ" : "where Φ is not flat";
    return `After ${last} steps ${s.method} is at x = ${show(x)}, ${judged}: the right slope is ${show(right)}, the wrong one, for which y stands still, ${show(wrong)}.`;
  };
});
