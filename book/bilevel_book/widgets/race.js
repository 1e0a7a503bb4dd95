// Chapter 8: four methods on Quadratic with one budget in gradients; a product Hv or Jv costs as many as its dial says.

import { METHODS, Generator, Quadratic, cost, finite, init } from "./core.js";
import { live, show } from "./stage.js";
import { COLOURS } from "./plane.js";

/** The gradients spent and Phi(x) - min Phi, after every step that the budget allows. */
export function spend(problem, method, options, { seed, budget, price }) {
  const generator = new Generator(seed), least = problem.objective(problem.minimiser());
  let state = init(problem, method, options), spent = 0;
  const found = { spent: [0], gap: [problem.objective(state.x) - least] };
  while (spent + cost(method, state.t, options.eta, price) <= budget) {
    spent += cost(method, state.t, options.eta, price);
    state = METHODS[method].step(problem, state, options, problem.sample(generator));
    if (!finite(state.x, state.y, state.v)) break;
    found.spent.push(spent);
    found.gap.push(Math.max(problem.objective(state.x) - least, 1e-16));
  }
  return found;
}

export default live("race", (stage) => {
  const track = stage.panel({
    label: "The four methods on a track, at the end of the budget", log: ["x"], x: [30, 1e-3], y: [0, 4.4], xlabel: "Φ(x) − min Φ, smaller to the right", height: 185, blank: true,
  });
  const chart = stage.panel({
    label: "The gap of the objective against the gradients spent", log: ["y"], x: [0, 1], y: [1e-3, 30], xlabel: "gradients spent", ylabel: "Φ(x) − min Φ", height: 255,
  });
  const made = stage.model.get("made"), names = Object.keys(METHODS);
  stage.play("budget");

  return (s) => {
    const problem = new Quadratic(made, { L: s.L, noise: s.noise });
    const runs = Object.fromEntries(names.map((name) => [name, spend(problem, name, { ...s, r_v: 100 }, s)]));
    stage.model.set("path", runs);
    chart.x = [0, Math.max(s.budget, 2)];
    chart.begin();
    names.forEach((name, k) => {
      const { spent, gap } = runs[name], lane = 3.45 - k, look = COLOURS[name];
      chart.line(spent, gap, look);
      chart.dot(spent.at(-1), gap.at(-1), look, 4);
      track.line([track.x[0], track.x[1]], [lane, lane], "quiet thin dotted");
      track.line([gap[0], gap.at(-1)], [lane, lane], `${look} bold`);
      track.dot(gap.at(-1), lane, look, 7);
      track.text(track.x[0], lane, `${name}: ${spent.length - 1} steps`, look, [4, -8]);
    });
    const order = [...names].sort((a, b) => runs[a].gap.at(-1) - runs[b].gap.at(-1));
    const [first, second] = order.map((name) => `${name} (${show(runs[name].gap.at(-1), 2)})`);
    const counted = ["FdeHBO", "FMBO"].map((name) => `${name} makes ${runs[name].spent.length - 1} steps`);
    return `With ${s.budget} gradients ${counted.join(", ")}. ${first} is nearest to the minimum, then ${second}.`;
  };
});
